#include "client/cli/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"

namespace tandem::cli {
namespace {

constexpr int kNone = -1;

// Dots and marks on a grid of cells. A cell has the colour of the last drawing in it.
class Canvas {
 public:
  Canvas(int columns, int rows, bool unicode)
      : columns_(columns), rows_(rows), unicode_(unicode), cells_(static_cast<size_t>(columns) * rows) {}

  int dot_columns() const { return columns_ * (unicode_ ? 2 : 1); }
  int dot_rows() const { return rows_ * (unicode_ ? 4 : 2); }

  void Dot(int x, int y, int series) {
    Cell& cell = CellAt(x, y);
    // The bits of a braille pattern (Unicode 15, chapter 21.1). The upper three rows count down the left
    // column, then the right column. The fourth row was added later.
    static constexpr uint8_t kBraille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cell.dots |= unicode_ ? kBraille[y % 4][x % 2] : 1 << (y % 2);
    cell.series = series;
  }

  // Draws a line (Bresenham 1965).
  void Line(int x0, int y0, int x1, int y1, int series) {
    const int dx = std::abs(x1 - x0), dy = -std::abs(y1 - y0);
    const int step_x = x0 < x1 ? 1 : -1, step_y = y0 < y1 ? 1 : -1;
    for (int error = dx + dy;;) {
      Dot(x0, y0, series);
      if (x0 == x1 && y0 == y1) return;
      const int doubled = 2 * error;
      if (doubled >= dy) {
        error += dy;
        x0 += step_x;
      }
      if (doubled <= dx) {
        error += dx;
        y0 += step_y;
      }
    }
  }

  void Mark(int x, int y, int series) {
    Cell& cell = CellAt(x, y);
    cell.marked = true;
    cell.series = series;
  }

  // Returns a row without trailing spaces.
  std::string Row(int row, const std::vector<Plot::Series>& series, const Style& style) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[static_cast<size_t>(row) * columns_ + column];
      text += cell.series == kNone ? " " : style.Wrap(series[cell.series].color, Glyph(cell));
    }
    return std::string(absl::StripTrailingAsciiWhitespace(text));
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    bool marked = false;
    int series = kNone;
  };

  Cell& CellAt(int x, int y) {
    const int column = x / (unicode_ ? 2 : 1), row = y / (unicode_ ? 4 : 2);
    return cells_[static_cast<size_t>(row) * columns_ + column];
  }

  std::string Glyph(const Cell& cell) const {
    if (cell.marked) return unicode_ ? "●" : "o";
    if (!unicode_) return std::string(1, " '.:"[cell.dots]);
    // U+2800 and the following code points, in UTF-8.
    return {'\xE2', static_cast<char>(0xA0 | cell.dots >> 6), static_cast<char>(0x80 | (cell.dots & 0x3F))};
  }

  const int columns_;
  const int rows_;
  const bool unicode_;
  std::vector<Cell> cells_;
};

// Returns the place of a value on an axis with this number of dots.
int Position(double value, double low, double high, int dots) {
  const double share = high > low ? (value - low) / (high - low) : 0.5;
  return std::clamp(static_cast<int>(std::lround(share * (dots - 1))), 0, dots - 1);
}

// Returns the ticks of an axis that includes low and high. An empty range gets a default range.
AxisTicks TicksOf(double low, double high, int wanted) {
  if (!(low <= high)) return {0, 1, 1, 0};
  if (low == high) {
    const double around = low == 0 ? 1 : std::abs(low) * 0.1;
    return RoundTicks(low - around, high + around, wanted);
  }
  return RoundTicks(low, high, wanted);
}

}  // namespace

AxisTicks RoundTicks(double low, double high, int wanted) {
  const double rough = (high - low) / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  AxisTicks ticks;
  ticks.step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    ticks.step = power * factor;
    if (ticks.step >= rough * 0.999) break;
  }
  ticks.low = std::floor(low / ticks.step + 1e-9) * ticks.step;
  ticks.high = std::ceil(high / ticks.step - 1e-9) * ticks.step;
  ticks.decimals = std::clamp(static_cast<int>(-std::floor(std::log10(ticks.step) + 1e-9)), 0, 12);
  return ticks;
}

std::vector<std::string> Plot::Render(int width, int height, bool unicode, const Style& style) const {
  width = std::max(width, 24);
  height = std::max(height, 5);
  const int rows = height - 3;

  double x_low = x_low_, x_high = x_high_, y_low = INFINITY, y_high = -INFINITY;
  const bool own_x = x_high_ <= x_low_;
  if (own_x) x_low = INFINITY, x_high = -INFINITY;
  for (const Series& series : series_) {
    for (const Point& point : series.points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      y_low = std::min(y_low, point.y);
      y_high = std::max(y_high, point.y);
      if (own_x) x_low = std::min(x_low, point.x), x_high = std::max(x_high, point.x);
    }
  }
  if (!(x_low <= x_high)) x_low = 0, x_high = 1;
  const AxisTicks y = TicksOf(y_low, y_high, std::max(2, rows / 2));

  // The numbers of the y axis, each in the row of its value.
  std::vector<std::string> labels(rows);
  int label_width = 0;
  for (int i = 0; y.low + i * y.step <= y.high + y.step / 2; ++i) {
    const double value = y.low + i * y.step;
    std::string& label = labels[rows - 1 - Position(value, y.low, y.high, rows)];
    // A loss that explodes must not push the plot off the terminal.
    label =
        std::abs(value) < 1e7 ? absl::StrFormat("%.*f", y.decimals, value) : absl::StrFormat("%.2e", value);
    label_width = std::max(label_width, DisplayWidth(label));
  }

  const int columns = width - label_width - 2;
  Canvas canvas(columns, rows, unicode);
  const auto column_of = [&](double value) { return Position(value, x_low, x_high, canvas.dot_columns()); };
  const auto row_of = [&](double value) {
    return canvas.dot_rows() - 1 - Position(value, y.low, y.high, canvas.dot_rows());
  };
  for (size_t i = 0; i < series_.size(); ++i) {
    const Point* before = nullptr;
    for (const Point& point : series_[i].points) {
      const bool finite = std::isfinite(point.x) && std::isfinite(point.y);
      if (finite) {
        const Point& from = before == nullptr ? point : *before;
        canvas.Line(column_of(from.x), row_of(from.y), column_of(point.x), row_of(point.y),
                    static_cast<int>(i));
      }
      before = finite ? &point : nullptr;
    }
  }
  // Draws marks last, so that no curve hides them.
  for (size_t i = 0; i < series_.size(); ++i) {
    if (!series_[i].marked) continue;
    for (const Point& point : series_[i].points) {
      if (std::isfinite(point.x) && std::isfinite(point.y)) {
        canvas.Mark(column_of(point.x), row_of(point.y), static_cast<int>(i));
      }
    }
  }

  std::vector<std::string> lines;
  std::string head = absl::StrCat(std::string(label_width + 2, ' '), style.Bold(title_));
  for (const Series& series : series_) {
    const char* key = series.marked ? (unicode ? "●" : "o") : (unicode ? "⠒⠒" : "..");
    absl::StrAppend(&head, "  ", style.Wrap(series.color, key), " ", series.name);
  }
  lines.push_back(Truncate(head, width));
  for (int row = 0; row < rows; ++row) {
    const char* axis = labels[row].empty() ? (unicode ? "│" : "|") : (unicode ? "┤" : "+");
    lines.push_back(absl::StrCat(style.Dim(absl::StrCat(PadLeft(labels[row], label_width), " ", axis)),
                                 canvas.Row(row, series_, style)));
  }

  // The x axis: a tick and its number, if the numbers have room.
  const AxisTicks x = TicksOf(x_low, x_high, std::max(2, columns / 12));
  std::vector<bool> ticked(columns, false);
  std::string numbers(width, ' ');
  int free_from = 0;
  for (int i = 0; x.low + i * x.step <= x_high + x.step * 1e-9; ++i) {
    const double value = x.low + i * x.step;
    if (value < x_low - x.step * 1e-9) continue;
    const int column = Position(value, x_low, x_high, columns);
    const std::string number = absl::StrFormat("%.*f", x.decimals, value);
    const int wanted = label_width + 2 + column - static_cast<int>(number.size()) / 2;
    const int begin = std::min(wanted, width - static_cast<int>(number.size()));
    ticked[column] = true;
    if (begin < free_from) continue;
    numbers.replace(begin, number.size(), number);
    free_from = begin + static_cast<int>(number.size()) + 1;
  }
  std::string axis = absl::StrCat(std::string(label_width + 1, ' '), unicode ? "└" : "+");
  for (int column = 0; column < columns; ++column) {
    absl::StrAppend(&axis, ticked[column] ? (unicode ? "┬" : "+") : (unicode ? "─" : "-"));
  }
  lines.push_back(style.Dim(axis));
  numbers.erase(numbers.find_last_not_of(' ') + 1);
  lines.push_back(style.Dim(numbers));
  return lines;
}

}  // namespace tandem::cli
