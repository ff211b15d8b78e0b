#ifndef TANDEM_SERVER_DAEMON_MEMORY_RETURN_H_
#define TANDEM_SERVER_DAEMON_MEMORY_RETURN_H_

#include <thread>

#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Returns freed memory to the system, because the allocator would keep the memory of a burst of calls. Has
// its own thread.
class MemoryReturn {
 public:
  // Checks every `interval`, and returns memory if the allocator keeps more than 32 MiB.
  explicit MemoryReturn(absl::Duration interval = absl::Seconds(5));
  ~MemoryReturn();
  MemoryReturn(const MemoryReturn&) = delete;
  MemoryReturn& operator=(const MemoryReturn&) = delete;

 private:
  void Run();

  const absl::Duration interval_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_MEMORY_RETURN_H_
