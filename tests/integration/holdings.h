#ifndef TANDEM_TESTS_INTEGRATION_HOLDINGS_H_
#define TANDEM_TESTS_INTEGRATION_HOLDINGS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::testing {

// The resources of a process.
struct Holdings {
  // Open files, including sockets.
  int files = 0;
  int sockets = 0;
  // The target of each open file: a path, or "socket:", "pipe:", "anon_inode:[eventfd]" and so on. Sorted.
  std::vector<std::string> targets;
  // Resident memory.
  int64_t memory_bytes = 0;
};

// Returns the process's resources. All are 0 if the process does not exist.
Holdings HoldingsOf(pid_t pid);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_HOLDINGS_H_
