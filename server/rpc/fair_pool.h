#ifndef TANDEM_SERVER_RPC_FAIR_POOL_H_
#define TANDEM_SERVER_RPC_FAIR_POOL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "engine/base/mutex.h"

namespace tandem {

// Threads for what users ask for that may take long, such as reading a data set: each user has a share of
// them, and users take turns, so that no one user's work holds up others. Thread-safe.
class FairPool {
 public:
  // At most `most_each` of a user's tasks run at once; others may, meanwhile.
  FairPool(int threads, int most_each);
  // Stop().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  // Has `task` run on one of the threads, behind the user's others. After Stop, `task` is dropped.
  void Post(const std::string& user, absl::AnyInvocable<void()> task);

  // Runs all that was posted, then ends the threads. Idempotent. Not from a task.
  void Stop();

 private:
  struct Lane {
    std::deque<absl::AnyInvocable<void()>> tasks;
    int running = 0;
  };

  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !turns_.empty() || (stopping_ && waiting_ == 0);
  }
  // Gives the user a turn where there is something to do and the user's share is not used up.
  void Queue(const std::string& user, const Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int most_each_;

  Mutex mutex_;
  // Of users with tasks that wait or run.
  std::map<std::string, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  // Each of those whose next task may run, once, in the order of their turns.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_FAIR_POOL_H_
