#ifndef TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_
#define TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_

#include "absl/status/status.h"

namespace tandem {

// Which sockets a worker may make.
enum class WorkerNetwork {
  // None at all.
  kNone,
  // Unix sockets: to the daemon.
  kUnix,
  // Those of IP and netlink too, as Gloo and NCCL need them.
  kAll,
};

// From here on, for good and for all threads, what a trainer never needs fails with EPERM: starting programs
// and processes, looking into and signalling other processes, mounting, namespaces, loading code into the
// kernel, keys, BPF, io_uring, clocks and other users' identities, and sockets beyond `network`. The rest is
// allowed: a library of tomorrow must not fail in the middle of a training. Where the program was built with
// a sanitizer, processes may be started and looked into, which its reports need. UNIMPLEMENTED: the kernel
// has no filters. Sets no_new_privs.
absl::Status EnterSyscallFilter(WorkerNetwork network);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SYSCALL_FILTER_H_
