#ifndef TANDEM_SERVER_DAEMON_OPTION_VALUES_H_
#define TANDEM_SERVER_DAEMON_OPTION_VALUES_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/time/time.h"

namespace tandem {

inline constexpr absl::Duration kLongestDuration = absl::Hours(24);
inline constexpr absl::Duration kLongestSchedulingDuration = absl::Hours(24 * 365);

// Makes CLI11 parse an option's value, such as "16GiB" or "500MB", as bytes. The size must be 0 or at least
// 1MiB, because a number without a unit means bytes and is probably a mistake.
CLI::Validator SizeValue();

// Adds a duration option between `least` and `most`. The error for other values ends with `why`.
CLI::Option* AddDuration(const std::string& flag, absl::Duration least, const std::string& description,
                         absl::Duration* value, CLI::App* app, absl::Duration most = kLongestDuration,
                         const std::string& why = "");

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_OPTION_VALUES_H_
