#ifndef TANDEM_TESTS_INTEGRATION_PROGRAMS_H_
#define TANDEM_TESTS_INTEGRATION_PROGRAMS_H_

#include <string>

namespace tandem::testing {

// Absolute paths of the programs under test: below $TANDEM_BIN_DIR where it is set (laid out as bazel-bin),
// else where Bazel put the test's data.
std::string DaemonProgram();
std::string WorkerProgram();
std::string CliProgram();

// Whether long suites run whole ($TANDEM_WHOLE is 1) or a sample.
bool RunsWhole();

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_PROGRAMS_H_
