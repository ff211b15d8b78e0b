#ifndef TANDEM_SERVER_SCHEDULER_AVAILABLE_MEMORY_H_
#define TANDEM_SERVER_SCHEDULER_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace tandem {

// Returns the bytes of memory that this process may use: the machine's memory, or the least limit of its
// control groups (versions 1 and 2). `root` is the parent folder of /proc and /sys.
int64_t AvailableMemory(const std::string& root = "");

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_AVAILABLE_MEMORY_H_
