#include <cstdlib>
#include <string>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/terminal.h"
#include "engine/base/deadlock_checks.h"
#include "engine/base/standard_files.h"

int main(int argc, char** argv) {
  tandem::OpenClosedStandardFiles();
  tandem::TurnOffDeadlockChecks();
  // gRPC would print connection failures to standard error. The command prints better messages.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  tandem::cli::SystemTerminal terminal;
  return tandem::cli::RunCommand(std::vector<std::string>(argv + 1, argv + argc), terminal);
}
