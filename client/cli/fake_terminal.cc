#include "client/cli/fake_terminal.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

namespace tandem::cli {

absl::optional<std::string> FakeTerminal::Environment(const std::string& name) const {
  const auto found = environment.find(name);
  if (found == environment.end()) return absl::nullopt;
  return found->second;
}

std::vector<std::string> FakeTerminal::Screen() const {
  // A cell holds a code point.
  std::vector<std::vector<std::string>> rows(1);
  size_t row = 0, column = 0;
  for (size_t i = 0; i < out_.size();) {
    if (out_[i] == '\n') {
      if (++row == rows.size()) rows.emplace_back();
      column = 0;
      ++i;
    } else if (out_[i] == '\r') {
      column = 0;
      ++i;
    } else if (out_[i] == '\x1b') {
      const size_t begin = i + 2;
      for (i = begin; !absl::ascii_isalpha(out_[i]);) ++i;
      int count = 1;
      (void)absl::SimpleAtoi(out_.substr(begin, i - begin), &count);
      const char command = out_[i++];
      if (command == 'A') row -= std::min<size_t>(row, count);
      if (command == 'K' || command == 'J') rows[row].resize(std::min(rows[row].size(), column));
      if (command == 'J') rows.resize(row + 1);
    } else {
      size_t end = i + 1;
      while (end < out_.size() && (static_cast<unsigned char>(out_[end]) & 0xC0) == 0x80) ++end;
      if (rows[row].size() <= column) rows[row].resize(column + 1, " ");
      rows[row][column++] = out_.substr(i, end - i);
      i = end;
    }
  }
  std::vector<std::string> lines;
  for (const auto& cells : rows) {
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(absl::StrJoin(cells, "")));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace tandem::cli
