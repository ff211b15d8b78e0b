#ifndef TANDEM_SERVER_DAEMON_SIZE_OPTION_H_
#define TANDEM_SERVER_DAEMON_SIZE_OPTION_H_

#include <CLI/CLI.hpp>

namespace tandem {

// Makes CLI11 parse an option's value, such as "16GiB" or "500MB", as bytes. The size must be 0 or at least
// 1MiB, because a number without a unit means bytes and is probably a mistake.
CLI::Validator SizeValue();

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_SIZE_OPTION_H_
