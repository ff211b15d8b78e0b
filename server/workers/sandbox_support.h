#ifndef TANDEM_SERVER_WORKERS_SANDBOX_SUPPORT_H_
#define TANDEM_SERVER_WORKERS_SANDBOX_SUPPORT_H_

#include <string>

namespace tandem {

// The parts of a worker's sandbox that this kernel supports. Thread-safe.

// Returns the version of Landlock. 0: none. 1 (Linux 5.13): files. 3 (6.2): truncation. 4 (6.7): TCP. 5
// (6.10): ioctl of devices. 6 (6.12): signals to other processes.
int LandlockVersion();

// Returns true if the kernel filters system calls (seccomp).
bool HasSyscallFilter();

// Returns the missing parts of a complete sandbox, for people; empty if none.
std::string MissingOfSandbox();

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_SUPPORT_H_
