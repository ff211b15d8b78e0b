#include "engine/collectives/local/local_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "engine/collectives/local/barrier.h"

namespace tandem {
namespace {

// Slices begin on cache lines, so that no two ranks write to one.
constexpr int64_t kLineBytes = 64;
// Elements that are summed at a time: sums stay in the first-level cache.
constexpr int64_t kBlock = 1024;

// What a rank brings to a call.
struct Offer {
  BufferView buffer;
  int argument = 0;  // The reduction, or the root.
};

// The elements [begin, end) of a buffer that belong to `rank`.
std::pair<int64_t, int64_t> Slice(const BufferView& buffer, int rank, int world_size) {
  const int64_t line = kLineBytes / SizeOf(buffer.dtype);
  const int64_t lines = (buffer.elements + line - 1) / line;
  const auto bound = [&](int r) { return std::min(buffer.elements, lines * r / world_size * line); };
  return {bound(rank), bound(rank + 1)};
}

template <typename T>
void ReduceSlice(const std::vector<Offer>& offers, int64_t begin, int64_t end, double factor) {
  T sum[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    const T* const first = static_cast<const T*>(offers[0].buffer.data) + at;
    std::copy_n(first, count, sum);
    for (size_t r = 1; r < offers.size(); ++r) {
      const T* const other = static_cast<const T*>(offers[r].buffer.data) + at;
      for (int64_t i = 0; i < count; ++i) sum[i] += other[i];
    }
    if (factor != 1) {
      for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<T>(sum[i] * static_cast<T>(factor));
    }
    for (const Offer& offer : offers) std::copy_n(sum, count, static_cast<T*>(offer.buffer.data) + at);
  }
}

// Calls function(T()) with the C++ type; false for a type that is not reduced.
template <typename Function>
bool DispatchOnReducible(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kFloat32:
      function(float{});
      return true;
    case DType::kFloat64:
      function(double{});
      return true;
    case DType::kInt32:
      function(int32_t{});
      return true;
    case DType::kInt64:
      function(int64_t{});
      return true;
    default:
      return false;
  }
}

// What the ranks share. Offers are written by their own rank before a meeting and read by all between that
// meeting and the next.
struct Group {
  explicit Group(int world_size) : barrier(world_size), offers(world_size) {}

  Barrier barrier;
  std::vector<Offer> offers;
  Mutex mutex;
  absl::Status abort_status ABSL_GUARDED_BY(mutex);
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(int rank, int world_size, std::shared_ptr<Group> group)
      : rank_(rank), world_size_(world_size), group_(std::move(group)) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return Exchange({buffer, static_cast<int>(op)}, [&]() -> absl::Status {
      const bool floating = IsFloatingPoint(buffer.dtype);
      if (op == ReduceOp::kAverage && !floating) {
        return absl::InvalidArgumentError(
            absl::StrCat("all-reduce: ", ToString(buffer.dtype), " has no average"));
      }
      const double factor = op == ReduceOp::kAverage ? 1.0 / world_size_ : 1.0;
      const auto [begin, end] = Slice(buffer, rank_, world_size_);
      const bool known = DispatchOnReducible(buffer.dtype, [&, begin = begin, end = end](auto type) {
        ReduceSlice<decltype(type)>(group_->offers, begin, end, factor);
      });
      if (!known) {
        return absl::InvalidArgumentError(
            absl::StrCat("all-reduce: ", ToString(buffer.dtype), " is not offered"));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Broadcast(BufferView buffer, int root) override {
    return Exchange({buffer, root}, [&]() -> absl::Status {
      if (root < 0 || root >= world_size_) {
        return absl::InvalidArgumentError(
            absl::StrCat("broadcast: root ", root, " is not one of the ", world_size_, " ranks"));
      }
      if (rank_ != root) {
        std::memcpy(buffer.data, group_->offers[root].buffer.data, buffer.elements * SizeOf(buffer.dtype));
      }
      return absl::OkStatus();
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
  absl::Status Exchange(Offer offer, const Work& work) {
    group_->offers[rank_] = offer;
    if (!group_->barrier.Arrive()) return AbortStatus();
    absl::Status status = CheckOffersAgree();
    if (status.ok()) status = work();
    group_->barrier.Complete();
    return status;
  }

  // Alike for all ranks.
  absl::Status CheckOffersAgree() const {
    const Offer& first = group_->offers[0];
    for (int r = 1; r < world_size_; ++r) {
      const Offer& other = group_->offers[r];
      if (other.buffer.elements != first.buffer.elements || other.buffer.dtype != first.buffer.dtype ||
          other.argument != first.argument) {
        return absl::InvalidArgumentError(
            absl::StrCat("ranks do not agree: rank 0 has ", first.buffer.elements, " elements of ",
                         ToString(first.buffer.dtype), ", rank ", r, " has ", other.buffer.elements, " of ",
                         ToString(other.buffer.dtype),
                         other.argument != first.argument ? ", and they ask for different operations" : ""));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AbortStatus() const {
    MutexLock lock(&group_->mutex);
    return group_->abort_status;
  }

  const int rank_;
  const int world_size_;
  const std::shared_ptr<Group> group_;
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
