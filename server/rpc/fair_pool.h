#ifndef TANDEM_SERVER_RPC_FAIR_POOL_H_
#define TANDEM_SERVER_RPC_FAIR_POOL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tandem {

// Threads for what users ask for that may take long, such as reading a data set: each user has a share of
// them, and users take turns, so that no one user's work holds up others. Thread-safe.
class FairPool {
 public:
  // What of one user may wait before Offer takes no more.
  struct Room {
    int tasks = 512;
    int64_t bytes = 64 << 20;
  };

  // At most `most_each` of a user's tasks run at once; others may, meanwhile.
  FairPool(int threads, int most_each) : FairPool(threads, most_each, Room()) {}
  FairPool(int threads, int most_each, Room room);
  // Stop().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  // A new request of the user's, whose `task` keeps so many bytes until it runs: has it run as Post does,
  // with OK. Where the user has no room left, calls it before this returns, with RESOURCE_EXHAUSTED and a
  // retry delay; the first that waits always has room.
  void Offer(const std::string& user, int64_t bytes, absl::AnyInvocable<void(absl::Status)> task);

  // Has `task` run on one of the threads, behind the user's others, whatever room there is: for the next step
  // of what was taken in. After Stop, `task` is dropped.
  void Post(const std::string& user, absl::AnyInvocable<void()> task);

  // Runs all that was posted, then ends the threads. Idempotent. Not from a task.
  void Stop();

 private:
  struct Task {
    absl::AnyInvocable<void()> run;
    int64_t bytes;
  };
  struct Lane {
    std::deque<Task> tasks;
    // Of all that wait.
    int64_t bytes = 0;
    int running = 0;
  };

  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !turns_.empty() || (stopping_ && waiting_ == 0);
  }
  bool HasRoom(const std::string& user, int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const std::string& user, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the user a turn where there is something to do and the user's share is not used up.
  void Queue(const std::string& user, const Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int most_each_;
  const Room room_;

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
