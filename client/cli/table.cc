#include "client/cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace tandem::cli {

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) {
    std::replace_if(
        cell.begin(), cell.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::Render(const Style& style) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width = DisplayWidth(columns_[i].heading);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : "  ",
                      columns_[i].right ? PadLeft(cells[i], widths[i]) : PadRight(cells[i], widths[i]));
    }
    return std::string(absl::StripTrailingAsciiWhitespace(text));
  };
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  std::string text = style.Dim(line(headings)) + "\n";
  for (const auto& row : rows_) absl::StrAppend(&text, line(row), "\n");
  return text;
}

}  // namespace tandem::cli
