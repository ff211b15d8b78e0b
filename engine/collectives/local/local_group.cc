#include "engine/collectives/local/local_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
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
struct Group {
  explicit Group(int world_size) : barrier(world_size), offers(world_size), data(world_size) {}

  Barrier barrier;
  std::vector<Offer> offers;
  std::vector<void*> data;
  Mutex mutex;
  absl::Status abort_status ABSL_GUARDED_BY(mutex);
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

  absl::Status Barrier() override {
    if (!group_->barrier.Arrive()) return AbortStatus();
    return absl::OkStatus();
  }

  void Abort(absl::Status status) override {
    {
      MutexLock lock(&group_->mutex);
      if (group_->abort_status.ok()) group_->abort_status = std::move(status);
    }
    group_->barrier.Break();
  }

 private:
  // Shows the offer to all ranks, calls `work` when all have shown theirs, and returns when all are done:
  // until then the others may touch this rank's memory.
  template <typename Work>
  absl::Status Exchange(const Offer& offer, void* data, const Work& work) {
    group_->offers[rank_] = offer;
    group_->data[rank_] = data;
    if (!group_->barrier.Arrive()) return AbortStatus();
    absl::Status status = CheckOffers(group_->offers);
    if (status.ok()) work();
    group_->barrier.Complete();
    return status;
  }

  absl::Status AbortStatus() const {
    MutexLock lock(&group_->mutex);
    return group_->abort_status;
  }

  const int rank_;
  const int world_size_;
  const std::shared_ptr<Group> group_;
  // This rank's slice of everyone's elements; kept from call to call, so that none allocates.
  std::vector<void*> slices_;
  std::vector<const void*> terms_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateLocalGroup(int world_size) {
  const auto group = std::make_shared<Group>(world_size);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (int rank = 0; rank < world_size; ++rank) {
    ends.push_back(std::make_unique<LocalCommunicator>(rank, world_size, group));
  }
  return ends;
}

}  // namespace tandem
