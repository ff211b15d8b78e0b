#ifndef TANDEM_SERVER_DAEMON_SIZE_OPTION_H_
#define TANDEM_SERVER_DAEMON_SIZE_OPTION_H_

#include <CLI/CLI.hpp>

namespace tandem {

// Lets CLI11 read an option's value as a size, "16GiB" or "500MB", into a number of bytes. It is 0 or at
// least 1MiB: a number without a unit is bytes, which is seldom meant.
CLI::Validator SizeValue();

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_SIZE_OPTION_H_
