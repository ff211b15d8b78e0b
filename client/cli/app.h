#ifndef TANDEM_CLIENT_CLI_APP_H_
#define TANDEM_CLIENT_CLI_APP_H_

#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace tandem::cli {

// Runs a command of `tandem`. `arguments` do not include the program's name. Returns the exit code; see
// exit_code.h.
int RunCommand(const std::vector<std::string>& arguments, Terminal& terminal);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_APP_H_
