#include "server/daemon/memory_return.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

namespace tandem {
namespace {

constexpr size_t kMostKept = size_t{32} << 20;

// Returns the process's resident memory, in bytes; 0 if unknown.
size_t Resident() {
  std::ifstream file("/proc/self/statm");
  size_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryReturn::MemoryReturn(absl::Duration interval) : interval_(interval), thread_([this] { Run(); }) {}

MemoryReturn::~MemoryReturn() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void MemoryReturn::Run() {
  // The values after the last return. `free` is the allocator's count of free bytes, which includes pages
  // that were returned. If a burst uses returned pages again, only `resident` grows.
  size_t free = 0;
  size_t resident = Resident();
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) return;
    }
    const size_t free_now = mallinfo2().fordblks;
    const size_t resident_now = Resident();
    free = std::min(free, free_now);
    resident = std::min(resident, resident_now);
    if (free_now - free <= kMostKept && resident_now - resident <= kMostKept) continue;
    malloc_trim(0);
    free = mallinfo2().fordblks;
    resident = Resident();
  }
}

}  // namespace tandem
