#ifndef TANDEM_TESTS_INTEGRATION_PROGRAMS_H_
#define TANDEM_TESTS_INTEGRATION_PROGRAMS_H_

#include <string>

namespace tandem::testing {

// Return absolute paths of the programs under test: below $TANDEM_BIN_DIR if it is set (laid out as
// bazel-bin), otherwise in the test's data.
std::string DaemonProgram();
std::string WorkerProgram();
std::string CliProgram();

// Returns whether long suites run whole ($TANDEM_WHOLE is 1) or a sample.
bool RunsWhole();

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_PROGRAMS_H_
