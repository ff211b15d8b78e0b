#ifndef TANDEM_TESTS_INTEGRATION_HOLDINGS_H_
#define TANDEM_TESTS_INTEGRATION_HOLDINGS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::testing {

// What a process holds.
struct Holdings {
  // Open files, sockets among them.
  int files = 0;
  int sockets = 0;
  // What each open file is: a path, or "socket:", "pipe:", "anon_inode:[eventfd]" and the like. Sorted.
  std::vector<std::string> targets;
  // Resident.
  int64_t memory_bytes = 0;
};

// All 0 where there is no such process.
Holdings HoldingsOf(pid_t pid);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_HOLDINGS_H_
