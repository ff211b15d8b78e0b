#include "server/daemon/option_values.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

constexpr int64_t kLeastSize = int64_t{1} << 20;

// Returns the size in bytes; -1 if `text` is no size. CLI11 would read "-1" as a very large number.
int64_t BytesOf(std::string text) {
  int64_t bytes = 0;
  try {
    const bool is_size = !absl::StartsWith(absl::StripAsciiWhitespace(text), "-") &&
                         CLI::AsSizeValue(false)(text).empty() && absl::SimpleAtoi(text, &bytes);
    return is_size ? bytes : -1;
  } catch (const CLI::Error&) {
    return -1;
  }
}

std::string ReadSize(std::string& text) {
  const std::string written = text;
  const int64_t bytes = BytesOf(text);
  if (bytes < 0) {
    return absl::StrCat("'", written, "' is not a size; write a size such as 500MiB, 16GiB or 2TiB");
  }
  text = absl::StrCat(bytes);
  if (bytes == 0 || bytes >= kLeastSize) return "";
  return absl::StrCat("is ", bytes, " bytes; it must be at least 1MiB. Add a unit, as in 16GiB");
}

// Parses absl's format, and days such as "30d".
bool ReadDuration(absl::string_view text, absl::Duration* value) {
  double days = 0;
  if (absl::ConsumeSuffix(&text, "d")) {
    // Excludes "nan", "infinity" and values far beyond any limit.
    if (!absl::SimpleAtod(text, &days) || !(std::abs(days) < 1e6)) return false;
    *value = absl::Hours(24 * days);
    return true;
  }
  return absl::ParseDuration(text, value);
}

std::string ShowDuration(absl::Duration value) {
  const absl::Duration day = absl::Hours(24);
  if (value <= day || value % day != absl::ZeroDuration()) return absl::FormatDuration(value);
  return absl::StrCat(value / day, "d");
}

}  // namespace

CLI::Option* AddSize(const std::string& flag, const std::string& description, int64_t* value, CLI::App* app) {
  CLI::Validator validator;
  validator.operation(ReadSize);
  return app->add_option(flag, *value, description)
      ->type_name("SIZE")
      ->transform(std::move(validator))
      ->capture_default_str();
}

CLI::Option* AddDuration(const std::string& flag, absl::Duration least, const std::string& description,
                         absl::Duration* value, CLI::App* app, absl::Duration most, const std::string& why) {
  return app
      ->add_option_function<std::string>(
          flag,
          [flag, least, most, why, value](const std::string& text) {
            if (ReadDuration(text, value) && *value >= least && *value <= most) return;
            throw CLI::ValidationError(
                flag,
                absl::StrCat(
                    "must be a duration from ", ShowDuration(least), " to ", ShowDuration(most),
                    most > kLongestDuration ? " such as 12h or 30d, not '" : " such as 30s or 2m, not '",
                    text, "'", why.empty() ? "" : ": ", why));
          },
          description)
      ->type_name("DURATION")
      ->default_str(ShowDuration(*value));
}

}  // namespace tandem
