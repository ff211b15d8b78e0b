#ifndef TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_
#define TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_

#include "absl/status/status.h"

namespace tandem {

// The sockets that a worker may create.
enum class WorkerNetwork {
  // None.
  kNone,
  // Unix sockets, to the daemon.
  kUnix,
  // Also IP and netlink sockets, which Gloo and NCCL need.
  kAll,
};

// Makes system calls that a trainer never needs fail with EPERM, for good and in all threads. The filter
// refuses these calls:
// - Starting programs and processes.
// - Inspecting other processes, signalling them, and setting their limits.
// - Mounts, namespaces, kernel modules, keys, BPF, io_uring, clocks, other identities.
// - Modes, owners and attributes of files by their path.
// - Device files, and input into terminals.
// - Making this process undumpable, and sockets beyond `network`.
//
// Everything else is allowed, because a future library must not fail in the middle of a training. A sanitizer
// build also allows starting, tracing and signalling processes, because its reports need them. Sets
// no_new_privs. UNIMPLEMENTED if the kernel has no filters.
absl::Status EnterSyscallFilter(WorkerNetwork network);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_
