#ifndef TANDEM_SERVER_RPC_BLOCKING_POOL_H_
#define TANDEM_SERVER_RPC_BLOCKING_POOL_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "engine/base/mutex.h"

namespace tandem {

// Threads for what waits on a disk or computes for long, so that gRPC's threads and the event hub's never do.
// Thread-safe.
class BlockingPool {
 public:
  explicit BlockingPool(int threads);
  // Stop().
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Has `task` run on one of the threads; in order where there is one thread.
  // After Stop, `task` is dropped.
  void Post(absl::AnyInvocable<void()> task);

  // Runs all that was posted, then ends the threads. Idempotent. Not from a task.
  void Stop();

 private:
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_BLOCKING_POOL_H_
