#ifndef TANDEM_CLIENT_CLI_PLOT_H_
#define TANDEM_CLIENT_CLI_PLOT_H_

#include <string>
#include <utility>
#include <vector>

#include "client/cli/style.h"

namespace tandem::cli {

// Curves in a terminal, drawn with the dots of Unicode's braille patterns, two by four in a cell, with axes,
// scales and a legend. Without Unicode it has two dots above each other in a cell, drawn with ' . and :. Not
// thread-safe.
class Plot {
 public:
  struct Point {
    double x;
    double y;
  };
  struct Series {
    std::string name;
    // A colour's code, as Style::Wrap takes it.
    std::string color;
    // Whether each point is marked.
    bool marked = false;
    // In the order in which they are joined. Points that are not finite are left out, and the curve breaks
    // there.
    std::vector<Point> points;
  };

  explicit Plot(std::string title) : title_(std::move(title)) {}

  void Add(Series series) { series_.push_back(std::move(series)); }
  // The x axis; default: from the least to the largest x.
  void SetXRange(double low, double high) {
    x_low_ = low;
    x_high_ = high;
  }

  // `height` lines of at most `width` columns: title and legend, curves, x axis, its numbers. At least 5
  // lines and 24 columns; smaller sizes count as that.
  std::vector<std::string> Render(int width, int height, bool unicode, const Style& style) const;

 private:
  const std::string title_;
  std::vector<Series> series_;
  double x_low_ = 0;
  double x_high_ = 0;
};

// The numbers of an axis: round steps (1, 2 or 5 times a power of ten), about `wanted` of them, around low
// and high.
struct AxisTicks {
  double low = 0;
  double high = 1;
  double step = 1;
  // Places behind the point that tell the numbers apart.
  int decimals = 0;
};
AxisTicks RoundTicks(double low, double high, int wanted);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PLOT_H_
