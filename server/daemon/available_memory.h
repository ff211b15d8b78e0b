#ifndef TANDEM_SERVER_DAEMON_AVAILABLE_MEMORY_H_
#define TANDEM_SERVER_DAEMON_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace tandem {

// The bytes of memory that this process may use: the machine's, or the least limit of its control groups
// (versions 1 and 2). `root` is where /proc and /sys are.
int64_t AvailableMemory(const std::string& root = "");

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_AVAILABLE_MEMORY_H_
