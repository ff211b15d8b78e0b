#include "client/lib/csv_pieces.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem::client {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr absl::string_view kDelimiters = ",;\t|";

bool IsBlank(absl::string_view row) { return row == "\n" || row == "\r\n" || row.empty(); }

// Removes the next row, with its line end, from `text` and returns it. Returns text that ends within quotes
// whole, and sets `is_open`.
absl::string_view TakeRow(absl::string_view& text, bool& is_open) {
  bool in_quotes = false;
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '"') {
      // A quote within a field is text, unless the field began with a quote.
      const bool begins_field = end == 0 || absl::StrContains(kDelimiters, text[end - 1]);
      if (in_quotes || begins_field) in_quotes = !in_quotes;
      // The second of two quotes within a quoted field.
      if (!in_quotes && end + 1 < text.size() && text[end + 1] == '"') {
        ++end;
        in_quotes = true;
      }
    } else if (c == '\n' && !in_quotes) {
      ++end;
      break;
    }
  }
  is_open = in_quotes;
  const absl::string_view row = text.substr(0, end);
  text.remove_prefix(end);
  return row;
}

}  // namespace

absl::StatusOr<std::vector<CsvPiece>> CutCsv(absl::string_view content, size_t bytes, int64_t rows) {
  absl::string_view text = content;
  if (absl::StartsWith(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string head(content.substr(0, content.size() - text.size()));
  bool is_open = false;
  if (absl::StartsWithIgnoreCase(text, "sep=")) absl::StrAppend(&head, TakeRow(text, is_open));
  int64_t row = 0;
  std::vector<CsvPiece> pieces;
  while (!text.empty()) {
    const absl::string_view next = TakeRow(text, is_open);
    if (is_open) {
      return absl::InvalidArgumentError(absl::StrCat("the text of row ", row + 1, " ends within quotes"));
    }
    if (IsBlank(next)) continue;
    if (++row == 1) {
      absl::StrAppend(&head, next);
      pieces.push_back({head, 1});
      continue;
    }
    if (pieces.back().rows > 1 &&
        (pieces.back().rows == rows || pieces.back().content.size() + next.size() > bytes)) {
      pieces.push_back({head, 1});
    }
    absl::StrAppend(&pieces.back().content, next);
    ++pieces.back().rows;
  }
  if (pieces.empty()) return absl::InvalidArgumentError("it has no rows");
  return pieces;
}

}  // namespace tandem::client
