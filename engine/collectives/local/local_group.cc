#include "engine/collectives/local/local_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/local/changes.h"
#include "engine/collectives/offer.h"
#include "engine/collectives/rank_order_sum.h"

namespace tandem {
namespace {

// Slices begin on cache lines, so that no two ranks write to the same line.
constexpr int64_t kLineBytes = 64;

// Returns the elements [begin, end) of the reduction that belong to `rank`.
std::pair<int64_t, int64_t> Slice(const Offer& offer, int rank, int world_size) {
  const int64_t line = kLineBytes / SizeOf(offer.dtype);
  const int64_t lines = (offer.elements + line - 1) / line;
  const auto bound = [&](int r) { return std::min(offer.elements, lines * r / world_size * line); };
  return {bound(rank), bound(rank + 1)};
}

// The largest number of begun calls of a rank with unfinished parts.
constexpr int64_t kMostBegun = 64;

// A rank's offer in a call, with its memory.
struct Call {
  Offer offer;
  void* data = nullptr;
};

// A rank's state that other ranks read, on its own cache lines.
struct alignas(64) Shown {
  // Calls are numbered from 1, equally on all ranks. posted: calls that the rank has made. claimed: calls
  // whose part of this rank is running or done. done: calls whose part is done.
  std::atomic<int64_t> posted{0};
  std::atomic<int64_t> claimed{0};
  std::atomic<int64_t> done{0};
  // Whether it may be using other ranks' memory.
  std::atomic<bool> at_work{false};
  // `waits` is odd while the rank waits for others. `awaited` is the call that it waits for.
  std::atomic<uint64_t> waits{0};
  std::atomic<int64_t> awaited{0};
  // By number modulo their count. A call stays until all its parts are done.
  std::array<Call, kMostBegun> calls;
};

// The state that the ranks share.
class Group {
 public:
  Group(int world_size, absl::Duration watchdog)
      : changes(world_size), ranks(world_size), watchdog_(watchdog) {
    if (world_size > 1 && watchdog < absl::InfiniteDuration()) thread_ = std::thread([this] { Watch(); });
  }
  ~Group() {
    {
      MutexLock lock(&mutex_);
      ends_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }

  void Abort(absl::Status status) {
    {
      MutexLock lock(&mutex_);
      if (abort_status_.ok()) abort_status_ = std::move(status);
    }
    aborted_.store(true);
    changes.Announce();
  }
  bool aborted() const { return aborted_.load(); }
  absl::Status abort_status() const {
    MutexLock lock(&mutex_);
    return abort_status_;
  }

  // Returns whether all ranks have made the call of this number.
  bool Posted(int64_t number) const {
    return std::all_of(ranks.begin(), ranks.end(), [number](const Shown& rank) {
      return rank.posted.load(std::memory_order_acquire) >= number;
    });
  }
  // Returns whether all parts of this call are done.
  bool Done(int64_t number) const {
    return std::all_of(ranks.begin(), ranks.end(), [number](const Shown& rank) {
      return rank.done.load(std::memory_order_acquire) >= number;
    });
  }
  bool AnyAtWork() const {
    return std::any_of(ranks.begin(), ranks.end(), [](const Shown& rank) { return rank.at_work.load(); });
  }

  Changes changes;
  std::vector<Shown> ranks;
  alignas(64) std::atomic<int64_t> shared_word{0};

 private:
  // Checks waiting ranks from time to time. A rank that waits in the same call for a whole watchdog period
  // has waited too long.
  void Watch() {
    const absl::Duration interval = watchdog_ / kLooks;
    std::vector<uint64_t> seen(ranks.size(), 0);
    std::vector<int> looks(ranks.size(), 0);
    while (true) {
      {
        MutexLock lock(&mutex_);
        const auto over = [this]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ends_ || !abort_status_.ok(); };
        if (mutex_.AwaitWithTimeout(absl::Condition(&over), interval)) return;
      }
      int64_t awaited = 0;  // The first call in which a rank has waited too long, or 0.
      std::vector<int> not_waiting;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        const uint64_t count = ranks[rank].waits.load(std::memory_order_acquire);
        const bool waits = count % 2 == 1;
        looks[rank] = waits && count == seen[rank] ? looks[rank] + 1 : 0;
        seen[rank] = count;
        if (!waits) not_waiting.push_back(static_cast<int>(rank));
        if (looks[rank] < kLooks) continue;
        const int64_t number = ranks[rank].awaited.load(std::memory_order_relaxed);
        awaited = awaited == 0 ? number : std::min(awaited, number);
      }
      if (awaited == 0) continue;
      std::vector<int> absent;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        if (ranks[rank].posted.load(std::memory_order_acquire) < awaited)
          absent.push_back(static_cast<int>(rank));
      }
      // If all ranks have made the call, a rank hangs in a part of it.
      if (absent.empty()) absent = not_waiting;
      if (absent.empty()) continue;
      Abort(absl::DeadlineExceededError(
          absl::StrCat(absent.size() == 1 ? "replica " : "replicas ", absl::StrJoin(absent, ", "),
                       absent.size() == 1 ? " has" : " have", " missed a collective for ",
                       absl::FormatDuration(watchdog_))));
      return;
    }
  }

  static constexpr int kLooks = 4;

  const absl::Duration watchdog_;
  std::atomic<bool> aborted_{false};
  mutable Mutex mutex_;
  absl::Status abort_status_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A rank does its part of a call after all ranks have made the call: at once if it is the last, otherwise in
// its next call. A rank that would wait for another rank's part does the part itself. So ranks wait only for
// calls that others have not made.
class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(int rank, int world_size, std::shared_ptr<Group> group)
      : rank_(rank),
        world_size_(world_size),
        group_(std::move(group)),
        own_(group_->ranks[rank]),
        offers_(world_size),
        slices_(world_size),
        terms_(world_size) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return Finish(BeginAllReduce(buffer, op));
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    const CollectiveCall call = op == ReduceOp::kAverage ? CollectiveCall::kAverage : CollectiveCall::kSum;
    return Post({.call = call, .dtype = buffer.dtype, .elements = buffer.elements}, buffer.data);
  }
  absl::Status Await(int64_t begun) override {
    TANDEM_RETURN_IF_ERROR(AwaitDone(begun));
    return TakeFault(faults_.begin(), faults_.upper_bound(begun));
  }
  absl::Status Broadcast(BufferView buffer, int root) override {
    return Finish(Post({.call = CollectiveCall::kBroadcast,
                        .dtype = buffer.dtype,
                        .root = root,
                        .elements = buffer.elements},
                       buffer.data));
  }
  absl::Status Barrier() override { return Finish(Post({.call = CollectiveCall::kBarrier}, nullptr)); }

  void Abort(absl::Status status) override { group_->Abort(std::move(status)); }
  absl::Status status() const override {
    return group_->aborted() ? group_->abort_status() : absl::OkStatus();
  }
  std::atomic<int64_t>* shared_word() const { return &group_->shared_word; }

 private:
  using Faults = std::map<int64_t, absl::Status>;

  // Makes the next call. Until all its parts are done, other ranks may use this rank's `data`.
  absl::StatusOr<int64_t> Post(const Offer& offer, void* data) {
    const int64_t number = own_.posted.load(std::memory_order_relaxed) + 1;
    if (number > kMostBegun) TANDEM_RETURN_IF_ERROR(AwaitDone(number - kMostBegun));
    if (group_->aborted()) return group_->abort_status();
    CallOf(own_, number) = {offer, data};
    own_.posted.store(number, std::memory_order_release);
    group_->changes.Announce();
    DoOwnParts();
    return number;
  }

  absl::Status Finish(const absl::StatusOr<int64_t>& posted) {
    if (!posted.ok()) return posted.status();
    TANDEM_RETURN_IF_ERROR(AwaitDone(*posted));
    return TakeFault(faults_.find(*posted), faults_.upper_bound(*posted));
  }

  // Returns when all parts of this call and of earlier calls are done. After an abort, returns when no rank
  // uses another's memory.
  absl::Status AwaitDone(int64_t number) {
    const auto is_over = [this, number] {
      DoOwnParts();
      DoPartsOfOthers(number);
      return group_->Done(number) || group_->aborted();
    };
    if (!is_over()) {
      own_.awaited.store(number, std::memory_order_relaxed);
      own_.waits.fetch_add(1, std::memory_order_release);
      group_->changes.Await(is_over);
      own_.waits.fetch_add(1, std::memory_order_relaxed);
    }
    if (group_->Done(number)) return absl::OkStatus();
    group_->changes.Await([this] { return !group_->AnyAtWork(); });
    return group_->abort_status();
  }

  // Does this rank's parts of all calls that every rank has made.
  void DoOwnParts() {
    const int64_t posted = own_.posted.load(std::memory_order_relaxed);
    while (judged_ < posted && group_->Posted(judged_ + 1)) {
      const int64_t number = judged_ + 1;
      if (own_.claimed.load(std::memory_order_relaxed) < number && !DoPart(rank_, number)) return;
      judged_ = number;
    }
  }

  // Does other ranks' unclaimed parts up to this call. Only parts of calls that this rank knows to be right.
  void DoPartsOfOthers(int64_t number) {
    for (int r = 0; r < world_size_; ++r) {
      const int64_t next = group_->ranks[r].done.load(std::memory_order_acquire) + 1;
      if (next <= std::min(number, judged_) && faults_.count(next) == 0) DoPart(r, next);
    }
  }

  // Does `rank`'s part of a call that every rank has made. Returns false if another thread does it, if an
  // earlier part is still running, or after an abort. Either this thread sees the abort, or the aborting
  // thread sees that this thread is at work.
  bool DoPart(int rank, int64_t number) {
    Shown& shown = group_->ranks[rank];
    int64_t before = number - 1;
    if (shown.done.load(std::memory_order_acquire) != before) return false;
    own_.at_work.store(true);
    const bool does = !group_->aborted() && shown.claimed.compare_exchange_strong(before, number);
    if (does) {
      for (int r = 0; r < world_size_; ++r) offers_[r] = CallOf(group_->ranks[r], number).offer;
      absl::Status status = CheckOffers(offers_);
      if (status.ok()) {
        Compute(rank, number);
      } else {
        faults_.emplace(number, std::move(status));
      }
      shown.done.store(number, std::memory_order_release);
    }
    own_.at_work.store(false);
    // After an abort, others may also wait for this thread to give up.
    if (does || group_->aborted()) group_->changes.Announce();
    return does;
  }

  void Compute(int rank, int64_t number) {
    const auto [offer, data] = CallOf(group_->ranks[rank], number);
    const int64_t size = SizeOf(offer.dtype);
    if (offer.call == CollectiveCall::kBarrier) return;
    if (offer.call == CollectiveCall::kBroadcast) {
      if (rank == offer.root || data == nullptr) return;
      std::memcpy(data, CallOf(group_->ranks[offer.root], number).data, offer.elements * size);
      return;
    }
    const auto [begin, end] = Slice(offer, rank, world_size_);
    for (int r = 0; r < world_size_; ++r) {
      terms_[r] = slices_[r] = static_cast<char*>(CallOf(group_->ranks[r], number).data) + begin * size;
    }
    const double factor = offer.call == CollectiveCall::kAverage ? 1.0 / world_size_ : 1.0;
    SumInRankOrder(offer.dtype, terms_, end - begin, factor, slices_);
  }

  // Returns the first fault from `first` to before `end`. Each fault is returned once.
  absl::Status TakeFault(Faults::iterator first, Faults::iterator end) {
    if (first == end) return absl::OkStatus();
    absl::Status status = std::move(first->second);
    faults_.erase(first, end);
    return status;
  }

  static Call& CallOf(Shown& rank, int64_t number) { return rank.calls[number % kMostBegun]; }

  const int rank_;
  const int world_size_;
  const std::shared_ptr<Group> group_;
  Shown& own_;
  // The number of calls whose part of this rank is done or claimed. Each is right, or has a fault.
  int64_t judged_ = 0;
  Faults faults_;  // By number of the call, until returned. A returned fault is of a call that all have done.
  // All ranks' offers, and a rank's slice of all ranks' elements. Kept between calls, so that no call
  // allocates.
  std::vector<Offer> offers_;
  std::vector<void*> slices_;
  std::vector<const void*> terms_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateLocalGroup(int world_size, absl::Duration watchdog) {
  const auto group = std::make_shared<Group>(world_size, watchdog);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (int rank = 0; rank < world_size; ++rank) {
    ends.push_back(std::make_unique<LocalCommunicator>(rank, world_size, group));
  }
  return ends;
}

std::atomic<int64_t>* SharedWordOf(const Communicator* end) {
  const auto* const local = dynamic_cast<const LocalCommunicator*>(end);
  return local == nullptr ? nullptr : local->shared_word();
}

}  // namespace tandem
