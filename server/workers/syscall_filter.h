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

// Makes system calls that a trainer never needs fail with EPERM, for good and in all threads: starting
// programs and processes, inspecting and signalling other processes, mounts, namespaces, kernel modules,
// keys, BPF, io_uring, clocks, other identities, and sockets beyond `network`. Everything else is allowed,
// because a future library must not fail in the middle of a training. In a sanitizer build, starting and
// inspecting processes is allowed, because its reports need both. UNIMPLEMENTED: the kernel has no filters.
// Sets no_new_privs.
absl::Status EnterSyscallFilter(WorkerNetwork network);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_
