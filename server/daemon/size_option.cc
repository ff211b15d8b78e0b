#include "server/daemon/size_option.h"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

constexpr int64_t kLeast = int64_t{1} << 20;

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
    return absl::StrCat("'", written, "' is no size; sizes are such as 500MiB, 16GiB or 2TiB");
  }
  text = absl::StrCat(bytes);
  if (bytes == 0 || bytes >= kLeast) return "";
  return absl::StrCat("is ", bytes, " bytes; at least 1MiB is needed, and a unit makes it so: 16GiB");
}

}  // namespace

CLI::Validator SizeValue() {
  CLI::Validator validator;
  validator.operation(ReadSize);
  return validator;
}

}  // namespace tandem
