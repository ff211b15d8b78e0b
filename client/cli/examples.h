#ifndef TANDEM_CLIENT_CLI_EXAMPLES_H_
#define TANDEM_CLIENT_CLI_EXAMPLES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tandem::cli {

// Returns an example for the help of a command, such as "tandem pause lenet" for "pause". Subcommands have a
// space in their name: "datasets show". Empty for a command without an example. Thread-safe.
absl::string_view ExampleOf(absl::string_view command);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_EXAMPLES_H_
