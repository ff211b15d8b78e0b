#include "engine/data/formats/csv_format.h"

#include <iconv.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/table/cell.h"

namespace tandem {
namespace {

constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
constexpr absl::string_view kSeparatorRow = "sep=";
// In this order, if several delimiters fit.
constexpr char kDelimiters[] = {',', ';', '\t', '|'};
constexpr size_t kRowsForDelimiter = 100;
constexpr size_t kRowsForHeader = 1000;
constexpr size_t kMostComment = 16;

using CellRows = std::vector<std::vector<std::string>>;

// Returns the first rows of a text. The last row of a text that is not whole may be cut, so that it is left
// out. Empty if the rows break the syntax.
CellRows FirstRows(absl::string_view text, bool is_whole, const CsvSyntax& syntax, size_t most) {
  CsvReader reader(text, syntax);
  std::vector<absl::string_view> fields;
  CellRows rows;
  while (rows.size() <= most) {
    const absl::StatusOr<bool> more = reader.Next(&fields);
    // A quoted cell may be cut.
    if (!more.ok() && is_whole) return {};
    if (!more.ok() || !*more) {
      if (!is_whole && more.ok() && !rows.empty()) rows.pop_back();
      return rows;
    }
    rows.emplace_back(fields.begin(), fields.end());
  }
  rows.resize(most);
  return rows;
}

// Returns the number of cells of each row, or 0 if rows differ.
size_t EqualWidth(const CellRows& rows) {
  if (rows.empty()) return 0;
  const size_t width = rows[0].size();
  const bool equal =
      std::all_of(rows.begin(), rows.end(), [width](const auto& row) { return row.size() == width; });
  return equal ? width : 0;
}

bool HasDecimalComma(absl::string_view cell) {
  double ignored = 0;
  return absl::StrContains(cell, ',') && ParseCsvNumber(cell, true, &ignored);
}

// Returns whether the rows that another delimiter than a comma splits have numbers with a decimal comma in
// every cell with a comma.
bool CommasAreDecimal(const CellRows& rows) {
  bool any = false;
  for (const auto& row : rows) {
    for (const std::string& cell : row) {
      if (!absl::StrContains(cell, ',')) continue;
      if (!HasDecimalComma(cell)) return false;
      any = true;
    }
  }
  return any;
}

// Sets the delimiter that splits all rows into the same number of cells. If several delimiters do, a comma
// wins, unless another delimiter leaves decimal commas. Without a comma, the most cells win. Returns false if
// no delimiter does.
bool FindDelimiter(const std::vector<char>& candidates, absl::string_view text, bool is_whole,
                   CsvSyntax* syntax) {
  size_t best = 1;
  CsvSyntax trial = *syntax;
  for (const char candidate : candidates) {
    trial.delimiter = candidate;
    const CellRows rows = FirstRows(text, is_whole, trial, kRowsForDelimiter);
    const size_t width = EqualWidth(rows);
    const bool is_better = width > best && (best == 1 || syntax->delimiter != ',');
    const bool is_decimal =
        width > 1 && candidate != ',' && syntax->delimiter == ',' && best > 1 && CommasAreDecimal(rows);
    if (!is_better && !is_decimal) continue;
    best = width;
    syntax->delimiter = candidate;
  }
  return best > 1;
}

bool IsInSingleQuotes(absl::string_view cell) {
  return cell.size() > 1 && cell.front() == '\'' && cell.back() == '\'';
}

// Returns whether some column has single quotes around each cell that is not empty. The first row may have
// names.
bool HasSingleQuotes(const CellRows& rows) {
  const size_t width = EqualWidth(rows);
  for (size_t i = 0; i < width; ++i) {
    bool any = false, all = true;
    for (size_t row = 1; row < rows.size() && all; ++row) {
      if (rows[row][i].empty()) continue;
      any = true;
      all = IsInSingleQuotes(rows[row][i]);
    }
    if (any && all) return true;
  }
  return false;
}

// Finds the delimiter, then also skips comments and tries single quotes until the rows have equal numbers of
// cells. Single quotes around all cells of a column are tried, too.
void FindSyntax(const v1::CsvSource& source, const std::vector<char>& candidates, absl::string_view text,
                bool is_whole, CsvSyntax* syntax) {
  const CsvSyntax given = *syntax;
  std::vector<std::string> comments = {given.comment};
  if (source.comment().empty() && absl::StartsWith(text, "#")) comments.emplace_back("#");
  std::vector<char> quotes = {given.quote};
  // Double quotes, even if they are wrong, show the character.
  if (source.quote().empty() && !absl::StrContains(text, '"')) quotes.push_back('\'');
  for (const char quote : quotes) {
    for (const std::string& comment : comments) {
      syntax->quote = quote;
      syntax->comment = comment;
      if (!FindDelimiter(candidates, text, is_whole, syntax)) continue;
      const bool may_be_single = quote == given.quote && quotes.size() > 1;
      if (!may_be_single || !HasSingleQuotes(FirstRows(text, is_whole, *syntax, kRowsForDelimiter))) return;
      const CsvSyntax found = *syntax;
      syntax->quote = '\'';
      if (!FindDelimiter(candidates, text, is_whole, syntax)) *syntax = found;
      return;
    }
  }
  *syntax = given;
}

// Returns whether a cell is a number, perhaps with marks between thousands. A table with such cells is read
// as numbers, and refused.
bool IsNumber(absl::string_view cell, bool decimal_comma) {
  double ignored = 0;
  return ParseCsvNumber(cell, decimal_comma, &ignored) || HasThousandsMarks(cell, decimal_comma);
}

// The cells of a column after the first row.
struct ColumnCells {
  bool has_numbers = false;
  bool has_texts = false;
  bool repeats_first = false;  // A cell equals the first row's cell.
};

std::vector<ColumnCells> CellsOf(const CellRows& rows, bool decimal_comma) {
  std::vector<ColumnCells> columns(rows.empty() ? 0 : rows[0].size());
  const CellRules rules{.decimal_comma = decimal_comma};
  for (size_t row = 1; row < rows.size(); ++row) {
    for (size_t i = 0; i < std::min(columns.size(), rows[row].size()); ++i) {
      const std::string& cell = rows[row][i];
      if (rules.IsMissing(cell)) continue;
      (IsNumber(cell, decimal_comma) ? columns[i].has_numbers : columns[i].has_texts) = true;
      columns[i].repeats_first |= cell == rows[0][i];
    }
  }
  return columns;
}

// Returns whether numbers have a decimal comma: a column has such numbers, and every column with a decimal
// comma or point has only such numbers. 1,001 proves nothing, because its comma may be between thousands.
bool FindDecimalComma(const CellRows& rows, char delimiter) {
  if (delimiter == ',') return false;
  bool any = false;
  const std::vector<ColumnCells> with_comma = CellsOf(rows, true), with_point = CellsOf(rows, false);
  for (size_t i = 0; i < with_comma.size(); ++i) {
    const bool is_number = with_comma[i].has_numbers && !with_comma[i].has_texts;
    const bool was_number = with_point[i].has_numbers && !with_point[i].has_texts;
    if (was_number && !is_number) return false;
    any |= is_number && !was_number;
  }
  return any;
}

// Returns whether the first row is clearly a sample: it has numbers wherever the other rows have numbers, and
// a text that another row repeats in a column of features. A table whose features are all numbers is not
// clear: there the first row counts as names, with a notice.
bool FirstRowIsSample(const v1::CsvSource& source, const CellRows& rows, bool decimal_comma) {
  if (rows.size() < 2 || source.target_columns_size() > 0 || source.feature_columns_size() > 0) return false;
  const std::vector<ColumnCells> columns = CellsOf(rows, decimal_comma);
  const CellRules rules{.decimal_comma = decimal_comma};
  bool has_number = false, repeats = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_number = IsNumber(rows[0][i], decimal_comma);
    if (columns[i].has_numbers && !columns[i].has_texts) {
      if (!is_number && !rules.IsMissing(rows[0][i])) return false;
      has_number |= is_number;
    } else if (i + 1 < columns.size()) {
      repeats |= columns[i].has_texts && columns[i].repeats_first && !is_number;
    }
  }
  return has_number && repeats;
}

std::vector<char> CandidatesOf(const v1::CsvSource& source) {
  if (source.delimiter().empty()) return {std::begin(kDelimiters), std::end(kDelimiters)};
  return {source.delimiter() == "\\t" ? '\t' : source.delimiter()[0]};
}

}  // namespace

v1::TableFormat CsvFormat::ToMessage() const {
  v1::TableFormat message;
  message.set_delimiter(std::string(1, syntax.delimiter));
  message.set_header(header);
  message.set_quote(std::string(1, syntax.quote));
  message.set_decimal_comma(decimal_comma);
  message.set_comment(syntax.comment);
  message.set_encoding(encoding);
  return message;
}

TextDecoder::TextDecoder(v1::TextEncoding encoding) {
  if (encoding == v1::TEXT_ENCODING_UTF16) {
    name_ = "UTF-16";
  } else if (encoding == v1::TEXT_ENCODING_LATIN1) {
    name_ = "ISO-8859-1";
  } else {
    return;
  }
  converter_ = iconv_open("UTF-8", name_);
}

TextDecoder::~TextDecoder() {
  if (*name_ != '\0' && converter_ != reinterpret_cast<void*>(-1)) iconv_close(converter_);
}

absl::Status TextDecoder::Decode(absl::string_view bytes, std::string* text) {
  if (*name_ == '\0') {
    absl::StrAppend(text, bytes);
    return absl::OkStatus();
  }
  if (converter_ == reinterpret_cast<void*>(-1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot be read as ", name_, ": iconv does not have this encoding; convert it to UTF-8"));
  }
  absl::StrAppend(&rest_, bytes);
  char* from = rest_.data();
  size_t left = rest_.size();
  char buffer[4096];
  while (left > 0) {
    char* to = buffer;
    size_t room = sizeof buffer;
    const size_t result = iconv(converter_, &from, &left, &to, &room);
    const int error = result == static_cast<size_t>(-1) ? errno : 0;
    text->append(buffer, to - buffer);
    if (error == EINVAL) break;
    if (error != 0 && error != E2BIG) {
      return absl::InvalidArgumentError(
          absl::StrCat("is not in the encoding ", name_, "; give csv.encoding, or convert it to UTF-8"));
    }
  }
  rest_.erase(0, rest_.size() - left);
  return absl::OkStatus();
}

absl::Status TextDecoder::Finish() const {
  if (rest_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("ends within a character of ", name_, "; it may be cut"));
}

v1::TextEncoding EncodingOf(const v1::CsvSource& source, absl::string_view bytes) {
  if (source.encoding() != v1::TEXT_ENCODING_UNSPECIFIED) return source.encoding();
  const bool is_utf16 = absl::StartsWith(bytes, "\xFF\xFE") || absl::StartsWith(bytes, "\xFE\xFF");
  return is_utf16 ? v1::TEXT_ENCODING_UTF16 : v1::TEXT_ENCODING_UTF8;
}

absl::Status CheckCsvFormat(const v1::CsvSource& source) {
  FieldViolations violations;
  const auto is_character = [](const std::string& text) {
    return text.size() == 1 && text[0] != '\n' && text[0] != '\r';
  };
  const bool is_tab = source.delimiter() == "\\t";
  if (!source.delimiter().empty() && !is_tab &&
      (!is_character(source.delimiter()) || source.delimiter() == "\"")) {
    violations.Add("csv.delimiter",
                   absl::StrCat("is ", QuotedCell(source.delimiter()), "; it must be one character"));
  }
  if (!source.quote().empty() && source.quote() != "\"" && source.quote() != "'") {
    violations.Add("csv.quote",
                   absl::StrCat("is ", QuotedCell(source.quote()), "; it must be '\"' or \"'\""));
  } else if (!source.quote().empty() && source.quote() == source.delimiter()) {
    violations.Add("csv.quote", "is the delimiter too; give another character");
  }
  if (source.comment().size() > kMostComment || absl::StrContains(source.comment(), '\n')) {
    violations.Add("csv.comment", absl::StrCat("is ", QuotedCell(source.comment()), "; it must be at most ",
                                               kMostComment, " characters of a line"));
  }
  return violations.ToStatus();
}

absl::StatusOr<CsvFormat> FindCsvFormat(const v1::CsvSource& source, absl::string_view text, bool is_whole) {
  TANDEM_RETURN_IF_ERROR(CheckCsvFormat(source));
  CsvFormat format;
  absl::ConsumePrefix(&text, kByteOrderMark);
  if (!source.quote().empty()) format.syntax.quote = source.quote()[0];
  format.syntax.comment = source.comment();
  std::vector<char> candidates = CandidatesOf(source);
  format.syntax.delimiter = candidates[0];
  const absl::string_view line = absl::StripAsciiWhitespace(text.substr(0, text.find('\n')));
  if (absl::StartsWith(text, kSeparatorRow) && line.size() <= kSeparatorRow.size() + 1) {
    // A tab is stripped with the blanks.
    const char separator = line.size() == kSeparatorRow.size() ? '\t' : line.back();
    if (source.delimiter().empty()) candidates = {separator};
    format.syntax.delimiter = candidates[0];
    format.has_separator_row = true;
    const size_t end = text.find('\n');
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  FindSyntax(source, candidates, text, is_whole, &format.syntax);
  format.has_quotes = absl::StrContains(text, format.syntax.quote);
  const CellRows rows = FirstRows(text, is_whole, format.syntax, kRowsForHeader);
  format.decimal_comma =
      source.has_decimal_comma() ? source.decimal_comma() : FindDecimalComma(rows, format.syntax.delimiter);
  format.header =
      source.has_header() ? source.header() : !FirstRowIsSample(source, rows, format.decimal_comma);
  return format;
}

}  // namespace tandem
