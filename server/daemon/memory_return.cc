#include "server/daemon/memory_return.h"

#include <malloc.h>

#include <cstddef>

namespace tandem {
namespace {

constexpr size_t kMostKept = size_t{32} << 20;

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
  // What was kept after the last return cannot be given back: it lies between what is used.
  size_t stays = 0;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) return;
    }
    const size_t kept = mallinfo2().fordblks;
    if (kept < stays) stays = kept;
    if (kept - stays <= kMostKept) continue;
    malloc_trim(0);
    stays = mallinfo2().fordblks;
  }
}

}  // namespace tandem
