#include "engine/collectives/local/local_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/collectives/local/barrier.h"
#include "engine/collectives/offer.h"
#include "engine/collectives/rank_order_sum.h"

namespace tandem {
namespace {

// Slices begin on cache lines, so that no two ranks write to one.
constexpr int64_t kLineBytes = 64;

// The elements [begin, end) of a buffer that belong to `rank`.
std::pair<int64_t, int64_t> Slice(const BufferView& buffer, int rank, int world_size) {
  const int64_t line = kLineBytes / SizeOf(buffer.dtype);
  const int64_t lines = (buffer.elements + line - 1) / line;
  const auto bound = [&](int r) { return std::min(buffer.elements, lines * r / world_size * line); };
  return {bound(rank), bound(rank + 1)};
}

// What the ranks share. Offers are written by their own rank before a meeting and read by all between that
// meeting and the next.
class Group {
 public:
  Group(int world_size, absl::Duration watchdog)
      : barrier(world_size), offers(world_size), data(world_size), waits_(world_size), watchdog_(watchdog) {
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
    barrier.Break();
  }
  absl::Status abort_status() const {
    MutexLock lock(&mutex_);
    return abort_status_;
  }

  // Meets the other ranks; false where the group was aborted.
  bool Meet(int rank) {
    waits_[rank].count.fetch_add(1, std::memory_order_relaxed);
    const bool met = barrier.Arrive();
    waits_[rank].count.fetch_add(1, std::memory_order_relaxed);
    return met;
  }

  Barrier barrier;
  std::vector<Offer> offers;
  std::vector<void*> data;

 private:
  // Odd while the rank waits for the others; on a cache line of its own.
  struct alignas(64) Waits {
    std::atomic<uint64_t> count{0};
  };

  // Looks now and then at who waits: who has waited in the same call for a whole watchdog's time has waited
  // too long.
  void Watch() {
    const absl::Duration interval = watchdog_ / kLooks;
    std::vector<uint64_t> seen(waits_.size(), 0);
    std::vector<int> looks(waits_.size(), 0);
    while (true) {
      {
        MutexLock lock(&mutex_);
        const auto over = [this]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ends_ || !abort_status_.ok(); };
        if (mutex_.AwaitWithTimeout(absl::Condition(&over), interval)) return;
      }
      std::vector<int> absent;
      bool too_long = false;
      for (size_t rank = 0; rank < waits_.size(); ++rank) {
        const uint64_t count = waits_[rank].count.load(std::memory_order_relaxed);
        const bool waits = count % 2 == 1;
        looks[rank] = waits && count == seen[rank] ? looks[rank] + 1 : 0;
        seen[rank] = count;
        too_long |= looks[rank] >= kLooks;
        if (!waits) absent.push_back(static_cast<int>(rank));
      }
      if (!too_long || absent.empty()) continue;
      Abort(absl::DeadlineExceededError(
          absl::StrCat(absent.size() == 1 ? "replica " : "replicas ", absl::StrJoin(absent, ", "),
                       absent.size() == 1 ? " has" : " have", " not come where the others wait, for ",
                       absl::FormatDuration(watchdog_))));
      return;
    }
  }

  static constexpr int kLooks = 4;

  std::vector<Waits> waits_;
  const absl::Duration watchdog_;
  mutable Mutex mutex_;
  absl::Status abort_status_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(int rank, int world_size, std::shared_ptr<Group> group)
      : rank_(rank),
        world_size_(world_size),
        group_(std::move(group)),
        slices_(world_size),
        terms_(world_size) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    const bool average = op == ReduceOp::kAverage;
    const CollectiveCall call = average ? CollectiveCall::kAverage : CollectiveCall::kSum;
    return Exchange({.call = call, .dtype = buffer.dtype, .elements = buffer.elements}, buffer.data, [&] {
      const auto [begin, end] = Slice(buffer, rank_, world_size_);
      for (int r = 0; r < world_size_; ++r) {
        terms_[r] = slices_[r] = static_cast<char*>(group_->data[r]) + begin * SizeOf(buffer.dtype);
      }
      SumInRankOrder(buffer.dtype, terms_, end - begin, average ? 1.0 / world_size_ : 1.0, slices_);
    });
  }

  absl::Status Broadcast(BufferView buffer, int root) override {
    const Offer offer = {
        .call = CollectiveCall::kBroadcast, .dtype = buffer.dtype, .root = root, .elements = buffer.elements};
    return Exchange(offer, buffer.data, [&] {
      if (rank_ == root) return;
      std::memcpy(buffer.data, group_->data[root], buffer.elements * SizeOf(buffer.dtype));
    });
  }

  absl::Status Barrier() override { return group_->Meet(rank_) ? absl::OkStatus() : group_->abort_status(); }

  void Abort(absl::Status status) override { group_->Abort(std::move(status)); }
  absl::Status status() const override { return group_->abort_status(); }

 private:
  // Shows the offer to all ranks, calls `work` when all have shown theirs, and returns when all are done:
  // until then the others may touch this rank's memory.
  template <typename Work>
  absl::Status Exchange(const Offer& offer, void* data, const Work& work) {
    group_->offers[rank_] = offer;
    group_->data[rank_] = data;
    if (!group_->Meet(rank_)) return group_->abort_status();
    absl::Status status = CheckOffers(group_->offers);
    if (status.ok()) work();
    group_->barrier.Complete();
    return status;
  }

  const int rank_;
  const int world_size_;
  const std::shared_ptr<Group> group_;
  // This rank's slice of everyone's elements; kept from call to call, so that none allocates.
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

}  // namespace tandem
