#ifndef TANDEM_SERVER_WORKERS_SANDBOX_H_
#define TANDEM_SERVER_WORKERS_SANDBOX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/syscall_filter.h"

namespace tandem {

// The rights of one worker. See SANDBOX.md.
struct SandboxPolicy {
  // Files and folders to read, in addition to the system's libraries and their files.
  std::vector<std::string> read;
  // Files and folders to read and write, in addition to /dev/null and similar devices.
  std::vector<std::string> write;
  WorkerNetwork network = WorkerNetwork::kAll;
  // Allows the driver's devices, shared memory and CUDA's cache.
  bool gpu = false;
  // The most memory, libraries and stacks included, in bytes; 0: no limit. Ignored in a sanitizer build.
  int64_t memory_bytes = 0;
};

// The restrictions in force.
struct SandboxState {
  // The version of Landlock; 0: none.
  int landlock = 0;
  bool filters_calls = false;
  // The reason why something is missing; empty if nothing is.
  std::string missing;
};

// Confines this process for good. Call it early, while the process has one thread. kBestEffort skips features
// that the kernel lacks. kOn returns FAILED_PRECONDITION instead, and the process should exit. kOff does
// nothing.
absl::StatusOr<SandboxState> EnterSandbox(SandboxMode mode, const SandboxPolicy& policy);

// Limits this process's memory, as SandboxPolicy::memory_bytes. Errors are the system's.
absl::Status LimitMemory(int64_t bytes);

// Returns a text for the log: "Landlock 7, system calls filtered". A reason for missing parts follows in
// brackets.
std::string DescribeSandbox(const SandboxState& state);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_H_
