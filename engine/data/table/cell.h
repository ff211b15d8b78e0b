#ifndef TANDEM_ENGINE_DATA_TABLE_CELL_H_
#define TANDEM_ENGINE_DATA_TABLE_CELL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace tandem {

// How the cells of a table are read.
struct CellRules {
  bool decimal_comma = false;
  // Texts besides the customary ones that mean a missing cell.
  absl::flat_hash_set<std::string> missing_texts = {};

  // Returns whether a cell is missing: empty, or a text such as "NA". Blanks around it do not count.
  bool IsMissing(absl::string_view cell) const;
};

// Returns a cell without blanks around it.
inline absl::string_view StripCell(absl::string_view cell) {
  // Most cells have no blanks, so their ends are looked at first.
  const auto is_blank = [](char character) { return static_cast<unsigned char>(character) <= ' '; };
  if (!cell.empty() && !is_blank(cell.front()) && !is_blank(cell.back())) return cell;
  return absl::StripAsciiWhitespace(cell);
}

// Returns a cell for messages, in quotes and at most 60 characters.
std::string QuotedCell(absl::string_view cell);

// Returns whether a text that Abseil reads as a number is hexadecimal, such as 0x10. Tables have such texts
// as names, so they are no numbers.
bool IsHexadecimal(absl::string_view text);

// Returns whether a text is a number with marks between its thousands. With a decimal comma, the marks are
// points, as in 1.234 or 1.234.567,8; without, they are commas, as in 1,234 or 1,234,567.8. Blanks around the
// number are allowed.
bool HasThousandsMarks(absl::string_view text, bool decimal_comma);

// For messages about a text that is no number: ", or give csv.decimal_comma: true ..." if commas between
// thousands of the text may be decimal commas, otherwise "".
absl::string_view DecimalCommaAdvice(absl::string_view text, bool decimal_comma);

// Parses a decimal number that is finite as a float. Blanks around the number are allowed. Returns false if
// `text` is no such number. With a decimal comma, a number with points between thousands is no such number,
// because 1.234 could be 1234.
bool ParseCsvNumber(absl::string_view text, bool decimal_comma, double* number);

// Returns the rule of ParseCsvNumber for messages: "it must be a finite number (at most 3.4e38)". Says how to
// mend points or commas of `text` that make it no number.
std::string NumberRule(absl::string_view text, bool decimal_comma);

// A date of a cell, perhaps with a time.
struct TableDate {
  int64_t year = 0;
  int month = 1;    // From 1.
  int day = 1;      // From 1.
  double hour = 0;  // In [0, 24).
  bool has_time = false;
  bool is_ambiguous = false;  // Day and month could be swapped.

  // Returns the days since 1970-01-01.
  int64_t Days() const;
  // Returns 0 for Monday, 6 for Sunday.
  int Weekday() const;
  // Returns "2024-05-31".
  std::string Text() const;
};

// Parses "2024-05-31", "2024/05/31", "31.05.2024" and "05/31/2024". `day_first`: the last form has the day
// first. A time such as "12:30", "12:30:59.5" may follow a blank or "T", and "Z" the time. Blanks around the
// date are allowed. Returns nothing for other texts.
std::optional<TableDate> ParseTableDate(absl::string_view text, bool day_first);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_TABLE_CELL_H_
