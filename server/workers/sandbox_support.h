#ifndef TANDEM_SERVER_WORKERS_SANDBOX_SUPPORT_H_
#define TANDEM_SERVER_WORKERS_SANDBOX_SUPPORT_H_

#include <string>

namespace tandem {

// What of a worker's sandbox this kernel has. Thread-safe.

// Of Landlock: 0 is nothing, 1 (Linux 5.13) is files; 3 (6.2) cutting files, 4 (6.7) TCP, 5 (6.10) ioctl of
// devices, 6 (6.12) signals to other processes.
int LandlockVersion();

// Whether it filters system calls (seccomp).
bool HasSyscallFilter();

// What is missing of a whole sandbox, for people; empty where nothing is.
std::string MissingOfSandbox();

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_SUPPORT_H_
