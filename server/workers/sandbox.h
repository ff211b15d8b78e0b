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

// What one worker may do: see SANDBOX.md.
struct SandboxPolicy {
  // Files and folders to read, beside the system's libraries and what they read.
  std::vector<std::string> read;
  // Files and folders to read and write, beside devices that hold nothing (/dev/null).
  std::vector<std::string> write;
  WorkerNetwork network = WorkerNetwork::kAll;
  // The driver's devices, shared memory and CUDA's cache.
  bool gpu = false;
  // The most memory that it may take, libraries and stacks included; 0: any. Without effect in a build with a
  // sanitizer.
  int64_t memory_bytes = 0;
};

// What is in force.
struct SandboxState {
  // 0: none.
  int landlock = 0;
  bool filters_calls = false;
  // Why something is missing; empty where nothing is.
  std::string missing;
};

// Confines this process for good: call it early, while it has one thread. kBestEffort: what the kernel does
// not have is left out; kOn: FAILED_PRECONDITION then, and the process should end. kOff: nothing is done.
absl::StatusOr<SandboxState> EnterSandbox(SandboxMode mode, const SandboxPolicy& policy);

// Bounds the memory that this process may take, as SandboxPolicy::memory_bytes does. Errors: the system's.
absl::Status LimitMemory(int64_t bytes);

// For a log: "Landlock 7, system calls filtered, no new privileges".
std::string DescribeSandbox(const SandboxState& state);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_H_
