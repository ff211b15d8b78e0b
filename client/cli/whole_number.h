#ifndef TANDEM_CLIENT_CLI_WHOLE_NUMBER_H_
#define TANDEM_CLIENT_CLI_WHOLE_NUMBER_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem::cli {

// For an option that takes a whole number from `least` on. CLI11's own checks print the largest double there
// is.
inline CLI::Validator WholeNumber(int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) -> std::string {
        int64_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= least) return "";
        return absl::StrCat("'", text, "' is not a whole number from ", least, " on");
      },
      "");
}

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_WHOLE_NUMBER_H_
