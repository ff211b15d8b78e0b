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

// Threads for what users ask for that may take long, such as reading a data set: each user has a share of
// them, and users take turns, so that no one user's work holds up others. Thread-safe.
class FairPool {
 public:
  // What of one user may be under way before Offer takes no more.
  struct Room {
    // That wait for a thread.
    int tasks = 512;
    // Of requests that were taken in and have not ended, and as many again of what they keep beside.
    int64_t bytes = 64 << 20;
    // What has so many bytes, or fewer, is small, and counts apart from all that is not: whatever a large
    // sweep holds, its user may still look at a list.
    int64_t small = 64 << 10;
    int64_t small_bytes = 32 << 20;
  };

 private:
  class Ledger;
  // What is held counts as one of these.
  enum class Kind { kSmall, kRequest, kMore };

 public:
  // Memory of a user's call that counts until this goes, which may be after the pool.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { Swap(other); }
    Hold& operator=(Hold&& other) noexcept {
      Swap(other);
      return *this;
    }
    ~Hold() { Release(); }
    // Counts no more from now on.
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

  // At most `most_each` of a user's tasks run at once; others may, meanwhile.
  FairPool(int threads, int most_each) : FairPool(threads, most_each, Room()) {}
  FairPool(int threads, int most_each, Room room);
  // Stop().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  using Task = absl::AnyInvocable<void(absl::StatusOr<Hold>)>;

  // A new request of the user's that keeps so many bytes: has `task` run as Post does, with the hold on them,
  // to be kept for as long as they are. Where the user has no room left, calls it before this returns, with
  // RESOURCE_EXHAUSTED and a retry delay. Where no other request is held that is not small, there is always
  // room for one. A null `interest` is never lost.
  void Offer(const std::string& user, int64_t bytes, Task task,
             std::shared_ptr<const CallInterest> interest = nullptr);

  // So many bytes more of a request that has a hold already. RESOURCE_EXHAUSTED as Offer; where no more is
  // held of the user's requests, but for what is small, there is always room: of two large sweeps one goes
  // on.
  absl::StatusOr<Hold> HoldMore(const std::string& user, int64_t bytes);

  // Has `task` run on one of the threads, behind the user's others, whatever room there is: for the next step
  // of what was taken in. After Drop, `task` is dropped.
  void Post(const std::string& user, absl::AnyInvocable<void()> task);

  // Calls the offered tasks that wait and have lost their interest with CANCELLED, on the caller's thread: a
  // client that is gone keeps neither memory nor a user's room, however long others run. Not from a task.
  void DropUnwanted();

  // Drops the tasks that wait, and all that come later, and lets the tasks that run go on. A task is dropped
  // by destroying it, on the caller's thread. Idempotent.
  void Drop();
  // Drop(), and waits until the tasks that run have ended. Idempotent. Not from a task.
  void Stop();

 private:
  // What users' calls hold. Thread-safe.
  class Ledger {
   public:
    // Whether there is room for it, with `most` bytes of its kind, or it is the only one; then it is taken.
    bool Take(const std::string& user, Kind kind, int64_t bytes, int64_t most) ABSL_LOCKS_EXCLUDED(mutex_);
    void Give(const std::string& user, Kind kind, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

   private:
    struct Held {
      int holds = 0;
      int64_t bytes = 0;
    };
    Mutex mutex_;
    // Those that have no holds are not there.
    std::map<std::pair<std::string, Kind>, Held> held_ ABSL_GUARDED_BY(mutex_);
  };

  struct Waiting {
    Task task;
    // What an offered task keeps.
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
  // Gives the user a turn where there is something to do and the user's share is not used up.
  void Queue(const std::string& user, const Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int most_each_;
  const Room room_;
  const std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>();

  Mutex mutex_;
  // Of users with tasks that wait or run.
  std::map<std::string, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  // Each of those whose next task may run, once, in the order of their turns.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_FAIR_POOL_H_
