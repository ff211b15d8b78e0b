#include "client/cli/format.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tandem::cli {
namespace {

// Returns the length of the escape sequence at the start of the text, or 0.
size_t EscapeLength(absl::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b' || text[1] != '[') return 0;
  size_t end = 2;
  while (end < text.size() && !absl::ascii_isalpha(text[end])) ++end;
  return std::min(end + 1, text.size());
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string Indented(absl::string_view text) { return absl::StrReplaceAll(text, {{"\n", "\n    "}}); }

std::string FormatCount(int64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    // Without this, 999,950 bytes would round to "1000.0 kB".
    if (value < 999.95 && *unit != '\0') break;
    value /= 1000;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

std::string FormatClock(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration + absl::Milliseconds(500)));
  if (seconds >= 3600) {
    return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
}

std::string FormatElapsed(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds < 10) return absl::StrFormat("%.2f s", seconds);
  if (seconds < 60) return absl::StrFormat("%.1f s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d min %d s", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%d h %d min", whole / 3600, whole / 60 % 60);
  return absl::StrFormat("%d d %d h", whole / 86400, whole / 3600 % 24);
}

std::string FormatAge(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min");
  if (seconds < 2 * 86400) return absl::StrCat(seconds / 3600, " h");
  return absl::StrCat(seconds / 86400, " d");
}

std::string FormatMeasure(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size != 0 && (size < 0.001 || size >= 1e6)) return absl::StrFormat("%.3e", value);
  if (size >= 1000) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.4f", value);
}

std::string FormatRate(double value) {
  if (!std::isfinite(value)) return "-";
  if (value >= 100) return FormatCount(std::llround(value));
  return absl::StrFormat("%.3g", value);
}

std::string FormatSetting(double value) {
  // Doubles below this hold every whole number.
  constexpr double kMostWhole = 9007199254740992;  // 2^53
  if (std::abs(value) <= kMostWhole && value == std::floor(value)) return absl::StrFormat("%.0f", value);
  // Seven digits and a point.
  constexpr size_t kShort = 8;
  const std::string text = absl::StrFormat("%.7g", value);
  double read = 0;
  if (text.size() <= kShort && absl::SimpleAtod(text, &read) && read == value) return text;
  return absl::StrFormat("%.6g", value);
}

std::string ShortName(absl::string_view name) { return std::string(name.substr(name.find('/') + 1)); }

std::string FormatTimestamp(absl::Time time, absl::TimeZone zone) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, zone);
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (const size_t escape = EscapeLength(text); escape > 0) {
      text.remove_prefix(escape);
      continue;
    }
    if (!IsContinuation(text[0])) ++width;
    text.remove_prefix(1);
  }
  return width;
}

std::string PadLeft(absl::string_view text, int width) {
  return absl::StrCat(std::string(std::max(0, width - DisplayWidth(text)), ' '), text);
}

std::string PadRight(absl::string_view text, int width) {
  return absl::StrCat(text, std::string(std::max(0, width - DisplayWidth(text)), ' '));
}

std::string Truncate(absl::string_view text, int width) {
  std::string result;
  int used = 0;
  while (!text.empty()) {
    if (const size_t escape = EscapeLength(text); escape > 0) {
      absl::StrAppend(&result, text.substr(0, escape));
      text.remove_prefix(escape);
      continue;
    }
    if (!IsContinuation(text[0])) ++used;
    if (used <= width) result += text[0];
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace tandem::cli
