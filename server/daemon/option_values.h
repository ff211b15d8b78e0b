#ifndef TANDEM_SERVER_DAEMON_OPTION_VALUES_H_
#define TANDEM_SERVER_DAEMON_OPTION_VALUES_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/time/time.h"

namespace tandem {

inline constexpr absl::Duration kLongestDuration = absl::Hours(24);
inline constexpr absl::Duration kLongestSchedulingDuration = absl::Hours(24 * 365);

// Adds an option for a size, such as "16GiB" or "500MB", in bytes. The size must be 0 or at least 1MiB,
// because a number without a unit means bytes and is probably a mistake.
CLI::Option* AddSize(const std::string& flag, const std::string& description, int64_t* value, CLI::App* app);

// Adds an option for a number between `least` and `most`.
template <typename Number>
CLI::Option* AddNumber(const std::string& flag, std::type_identity_t<Number> least,
                       std::type_identity_t<Number> most, const std::string& description, Number* value,
                       CLI::App* app) {
  return app->add_option(flag, *value, description)
      ->type_name("N")
      ->check(CLI::Range(least, most))
      ->capture_default_str();
}

// Adds a duration option between `least` and `most`. The error for other values ends with `why`.
CLI::Option* AddDuration(const std::string& flag, absl::Duration least, const std::string& description,
                         absl::Duration* value, CLI::App* app, absl::Duration most = kLongestDuration,
                         const std::string& why = "");

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_OPTION_VALUES_H_
