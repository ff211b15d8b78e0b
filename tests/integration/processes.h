#ifndef TANDEM_TESTS_INTEGRATION_PROCESSES_H_
#define TANDEM_TESTS_INTEGRATION_PROCESSES_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::testing {

// Returns all processes, except zombies and the caller, whose program has the file name `program` ("" for
// any) and whose arguments, environment or working folder mention `folder`.
std::vector<pid_t> FindProcesses(absl::string_view program, absl::string_view folder);

// Polls until the condition holds. Returns false at the deadline.
bool WaitUntil(absl::FunctionRef<bool()> condition, absl::Duration timeout = absl::Seconds(60));

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_PROCESSES_H_
