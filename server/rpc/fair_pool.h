#ifndef TANDEM_SERVER_RPC_FAIR_POOL_H_
#define TANDEM_SERVER_RPC_FAIR_POOL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/rpc/call_interest.h"

namespace tandem {

// Threads for users' long work, such as reading a data set. Each user gets a share of the threads, and users
// take turns, so that no user's work delays others. Thread-safe.
class FairPool {
 public:
  // The limits on one user's work, beyond which Offer refuses.
  struct Room {
    // The most tasks that wait for a thread.
    int tasks = 512;
    // The most bytes of large requests, and separately the most bytes of large HoldMores. 64 MiB.
    int64_t bytes = 64 << 20;
    // A request or HoldMore of at most `small` bytes counts against `small_bytes` instead of `bytes`. So a
    // user with a large sweep can still list jobs.
    int64_t small = 64 << 10;
    int64_t small_bytes = 32 << 20;
  };

 private:
  class Ledger;
  // The class of a hold's memory.
  enum class Kind { kSmall, kRequest, kMore };

 public:
  // Counts the memory of a user's call until destroyed. May outlive the pool.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { Swap(other); }
    Hold& operator=(Hold&& other) noexcept {
      Swap(other);
      return *this;
    }
    ~Hold() { Release(); }
    // Stops counting now.
    void Release();

   private:
    friend class FairPool;
    Hold(std::shared_ptr<Ledger> ledger, std::string user, Kind kind, int64_t bytes)
        : ledger_(std::move(ledger)), user_(std::move(user)), kind_(kind), bytes_(bytes) {}
    void Swap(Hold& other) noexcept {
      ledger_.swap(other.ledger_);
      user_.swap(other.user_);
      std::swap(kind_, other.kind_);
      std::swap(bytes_, other.bytes_);
    }

    std::shared_ptr<Ledger> ledger_;
    std::string user_;
    Kind kind_ = Kind::kSmall;
    int64_t bytes_ = 0;
  };

  // At most `most_each` tasks of a user run at once. Other users' tasks may run meanwhile.
  FairPool(int threads, int most_each) : FairPool(threads, most_each, Room()) {}
  FairPool(int threads, int most_each, Room room);
  // Calls Stop.
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  using Task = absl::AnyInvocable<void(absl::StatusOr<Hold>)>;

  // Accepts a user's new request, which keeps `bytes` of memory. Runs `task` like Post, with a hold on the
  // memory. The task must keep the hold as long as the memory. If the user's room is used up, calls `task`
  // before returning, with RESOURCE_EXHAUSTED and a retry delay. A user's only large request is always
  // accepted. A null `interest` is never lost.
  void Offer(const std::string& user, int64_t bytes, Task task,
             std::shared_ptr<const CallInterest> interest = nullptr);

  // Holds more memory for an accepted request. RESOURCE_EXHAUSTED as Offer. A user's only large hold is
  // always granted, so that one of two large sweeps continues.
  absl::StatusOr<Hold> HoldMore(const std::string& user, int64_t bytes);

  // Runs `task` on a thread, after the user's other tasks, without a limit. For the next step of an accepted
  // request. After Drop, `task` is dropped.
  void Post(const std::string& user, absl::AnyInvocable<void()> task);

  // Calls waiting offered tasks that have lost their interest with CANCELLED, on the caller's thread. So a
  // client that is gone keeps neither memory nor room. Must not be called in a task.
  void DropUnwanted();

  // Drops waiting and later tasks; running tasks continue. A dropped task is destroyed on the caller's
  // thread. Idempotent.
  void Drop();
  // Calls Drop, and blocks until the running tasks end. Idempotent. Must not be called in a task.
  void Stop();

 private:
  // The memory that users' calls hold. Thread-safe.
  class Ledger {
   public:
    // Takes the memory if the user's holds of this kind stay within `most` bytes, or if the user has no other
    // hold of this kind. Returns false otherwise.
    bool Take(const std::string& user, Kind kind, int64_t bytes, int64_t most) ABSL_LOCKS_EXCLUDED(mutex_);
    void Give(const std::string& user, Kind kind, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

   private:
    struct Held {
      int holds = 0;
      int64_t bytes = 0;
    };
    Mutex mutex_;
    // Only users with holds.
    std::map<std::pair<std::string, Kind>, Held> held_ ABSL_GUARDED_BY(mutex_);
  };

  struct Waiting {
    Task task;
    // The memory of an offered task.
    Hold hold;
    std::shared_ptr<const CallInterest> interest;
  };
  struct Lane {
    std::deque<Waiting> tasks;
    int running = 0;
  };

  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !turns_.empty(); }
  absl::StatusOr<Hold> Take(const std::string& user, Kind kind, int64_t bytes);
  absl::Status NoRoom(const std::string& user) const;
  void Add(const std::string& user, Waiting waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the user a turn if the user has a waiting task and a free share.
  void Queue(const std::string& user, const Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int most_each_;
  const Room room_;
  const std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>();

  Mutex mutex_;
  // Only users with waiting or running tasks.
  std::map<std::string, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  // The users whose next task may run, each once, in order.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_FAIR_POOL_H_
