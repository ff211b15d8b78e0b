#include "engine/data/table/cell.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "engine/base/utf8.h"

namespace tandem {
namespace {

// The longest number with a decimal comma.
constexpr size_t kMaxNumberLength = 64;

// Parses a plain number such as "-12.375" if doubles hold its digits and its power of ten exactly. A single
// division then gives the nearest double. Returns false for other texts.
bool ParsePlainNumber(absl::string_view text, double* number) {
  constexpr double kPowers[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
  constexpr uint64_t kLargest = uint64_t{1} << 53;
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool is_negative = at != end && *at == '-';
  if (is_negative) ++at;
  // With so few characters, `digits` cannot overflow, and kPowers has the power.
  if (at == end || end - at > 19) return false;
  uint64_t digits = 0;
  const char* point = end;
  for (; at != end; ++at) {
    const auto digit = static_cast<unsigned char>(*at - '0');
    if (digit < 10) {
      digits = digits * 10 + digit;
    } else if (*at == '.' && point == end) {
      point = at;
    } else {
      return false;
    }
  }
  // Numbers that end in a point, or are only a point, are rare.
  if (digits > kLargest || point == end - 1) return false;
  const double value =
      point == end ? static_cast<double>(digits) : static_cast<double>(digits) / kPowers[end - point - 1];
  *number = is_negative ? -value : value;
  return true;
}

// Takes a number of `least` to `most` digits off `text`.
bool TakeDigits(absl::string_view* text, size_t least, size_t most, int64_t* number) {
  size_t length = 0;
  *number = 0;
  while (length < text->size() && length < most && absl::ascii_isdigit((*text)[length])) {
    *number = *number * 10 + ((*text)[length++] - '0');
  }
  text->remove_prefix(length);
  return length >= least && (text->empty() || !absl::ascii_isdigit(text->front()));
}

bool Take(absl::string_view* text, char wanted) {
  if (text->empty() || text->front() != wanted) return false;
  text->remove_prefix(1);
  return true;
}

// Takes a time off `text`, in hours. The time must be all of the rest.
bool TakeTime(absl::string_view text, double* hour) {
  int64_t hours = 0, minutes = 0, seconds = 0;
  double fraction = 0;
  if (!TakeDigits(&text, 1, 2, &hours) || !Take(&text, ':') || !TakeDigits(&text, 2, 2, &minutes)) {
    return false;
  }
  if (Take(&text, ':')) {
    if (!TakeDigits(&text, 2, 2, &seconds)) return false;
    if (Take(&text, '.')) {
      double place = 0.1;
      for (; !text.empty() && absl::ascii_isdigit(text.front()); text.remove_prefix(1), place /= 10) {
        fraction += place * (text.front() - '0');
      }
    }
  }
  Take(&text, 'Z');
  if (!text.empty() || hours > 23 || minutes > 59 || seconds > 59) return false;
  *hour = static_cast<double>(hours) + static_cast<double>(minutes) / 60 +
          (static_cast<double>(seconds) + fraction) / 3600;
  return true;
}

}  // namespace

bool CellRules::IsMissing(absl::string_view cell) const {
  cell = StripCell(cell);
  switch (cell.size()) {
    case 0:
      return true;
    case 1:
      if (cell == "?") return true;
      break;
    case 2:
      if (cell == "NA") return true;
      break;
    case 3:
      if (cell == "N/A" || cell == "n/a" || cell == "NaN" || cell == "nan" || cell == "NAN") return true;
      break;
    case 4:
      if (cell == "null" || cell == "NULL" || cell == "None" || cell == "#N/A") return true;
      break;
    default:
      break;
  }
  return !missing_texts.empty() && missing_texts.contains(cell);
}

std::string QuotedCell(absl::string_view cell) {
  return absl::StrCat("'", ToUtf8(absl::Utf8SafeCHexEscape(cell.substr(0, 60))),
                      cell.size() > 60 ? "..." : "", "'");
}

bool IsHexadecimal(absl::string_view text) { return text.find_first_of("xX") != absl::string_view::npos; }

bool HasThousandsMarks(absl::string_view text, bool decimal_comma) {
  const char mark = decimal_comma ? '.' : ',';
  text = StripCell(text);
  if (!Take(&text, '-')) Take(&text, '+');
  int64_t ignored = 0;
  if (absl::StartsWith(text, "0") || !TakeDigits(&text, 1, 3, &ignored)) return false;
  bool any = false;
  for (; Take(&text, mark); any = true) {
    if (!TakeDigits(&text, 3, 3, &ignored)) return false;
  }
  Take(&text, decimal_comma ? ',' : '.');
  return any && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::string_view DecimalCommaAdvice(absl::string_view text, bool decimal_comma) {
  if (decimal_comma || !HasThousandsMarks(text, decimal_comma)) return "";
  return ", or give csv.decimal_comma: true if the comma is a decimal comma";
}

std::string NumberRule(absl::string_view text, bool decimal_comma) {
  const char* advice = "";
  if (decimal_comma && HasThousandsMarks(text, decimal_comma)) {
    advice =
        "; in a table with decimal commas, remove points between thousands, and write a comma for a decimal "
        "point";
  } else if (!decimal_comma && absl::StrContains(text, ',') &&
             text.find_first_not_of("0123456789.,+- ") == absl::string_view::npos) {
    advice = "; remove commas between thousands, and write a point for a decimal comma";
  }
  return absl::StrCat("it must be a finite number (at most 3.4e38", advice, ")");
}

bool ParseCsvNumber(absl::string_view text, bool decimal_comma, double* number) {
  text = StripCell(text);
  if (decimal_comma && HasThousandsMarks(text, decimal_comma)) return false;
  // Only one sign: "+-1" is no number.
  if (Take(&text, '+') && absl::StartsWith(text, "-")) return false;
  char copy[kMaxNumberLength];
  if (decimal_comma && absl::StrContains(text, ',')) {
    if (text.size() > kMaxNumberLength || absl::StrContains(text, '.')) return false;
    for (size_t i = 0; i < text.size(); ++i) copy[i] = text[i] == ',' ? '.' : text[i];
    text = absl::string_view(copy, text.size());
  }
  if (ParsePlainNumber(text, number)) return true;
  if (IsHexadecimal(text)) return false;
  const absl::from_chars_result result = absl::from_chars(text.data(), text.data() + text.size(), *number);
  // A number too small for a double is 0, or nearly so.
  const bool is_small = result.ec == std::errc::result_out_of_range && std::abs(*number) < 1;
  return !text.empty() && (result.ec == std::errc() || is_small) && result.ptr == text.data() + text.size() &&
         std::abs(*number) <= std::numeric_limits<float>::max();
}

int64_t TableDate::Days() const { return absl::CivilDay(year, month, day) - absl::CivilDay(1970, 1, 1); }

int TableDate::Weekday() const {
  return static_cast<int>(absl::GetWeekday(absl::CivilDay(year, month, day)));
}

std::string TableDate::Text() const { return absl::StrFormat("%04d-%02d-%02d", year, month, day); }

std::optional<TableDate> ParseTableDate(absl::string_view text, bool day_first) {
  text = StripCell(text);
  if (text.size() < 8 || !absl::ascii_isdigit(text.front())) return std::nullopt;
  TableDate date;
  int64_t first = 0, second = 0, third = 0;
  const bool year_first = text.find_first_not_of("0123456789") == 4;
  if (!TakeDigits(&text, year_first ? 4 : 1, year_first ? 4 : 2, &first) || text.empty()) return std::nullopt;
  const char separator = text.front();
  const bool is_known = separator == '/' || separator == '-' || (separator == '.' && !year_first);
  if (!is_known || !Take(&text, separator) || !TakeDigits(&text, 1, 2, &second) || !Take(&text, separator) ||
      !TakeDigits(&text, year_first ? 1 : 4, year_first ? 2 : 4, &third)) {
    return std::nullopt;
  }
  if (year_first) {
    date.year = first;
    date.month = static_cast<int>(second);
    date.day = static_cast<int>(third);
  } else {
    const bool days_lead = separator == '.' || day_first;
    date.year = third;
    date.month = static_cast<int>(days_lead ? second : first);
    date.day = static_cast<int>(days_lead ? first : second);
    date.is_ambiguous = separator != '.' && first <= 12 && second <= 12 && first != second;
  }
  if (date.month < 1 || date.month > 12 || date.day < 1) return std::nullopt;
  const absl::CivilDay civil(date.year, date.month, date.day);
  if (civil.month() != date.month || civil.day() != date.day) return std::nullopt;
  if (text.empty()) return date;
  if (!Take(&text, ' ') && !Take(&text, 'T')) return std::nullopt;
  if (!TakeTime(text, &date.hour)) return std::nullopt;
  date.has_time = true;
  return date;
}

}  // namespace tandem
