#include "engine/backend/thread_communicator.h"

#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "engine/tensor/half.h"

namespace tandem {
namespace {

// Elements have type `T` and are added in type `Sum`.
template <typename T, typename Sum = T>
void ReduceAs(const std::vector<BufferView>& views, bool average) {
  for (int64_t i = 0; i < views[0].elements; ++i) {
    Sum sum = 0;
    for (const BufferView& view : views) {
      sum = static_cast<Sum>(sum + static_cast<Sum>(static_cast<const T*>(view.data)[i]));
    }
    if (average) sum = static_cast<Sum>(sum / static_cast<Sum>(views.size()));
    for (const BufferView& view : views) static_cast<T*>(view.data)[i] = static_cast<T>(sum);
  }
}

void Reduce(const std::vector<BufferView>& views, ReduceOp op) {
  const bool average = op == ReduceOp::kAverage;
  switch (views[0].dtype) {
    case DType::kFloat32:
      return ReduceAs<float>(views, average);
    case DType::kFloat64:
      return ReduceAs<double>(views, average);
    case DType::kBFloat16:
      return ReduceAs<BFloat16, float>(views, average);
    case DType::kFloat16:
      return ReduceAs<Float16, float>(views, average);
    case DType::kInt32:
      return ReduceAs<int32_t>(views, average);
    case DType::kInt64:
      return ReduceAs<int64_t>(views, average);
    case DType::kUInt8:
      return ReduceAs<uint8_t>(views, average);
  }
}

// The shared state of a group's ranks. The last rank to join a call does the work for all.
class Meeting {
 public:
  explicit Meeting(int world_size) : world_size_(world_size), views_(world_size) {}

  int world_size() const { return world_size_; }

  // Adds `view` of `rank`. When all ranks have joined, runs `act` on all views.
  template <typename Act>
  absl::Status Meet(int rank, BufferView view, Act act) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
    views_[rank] = view;
    const int64_t round = round_;
    if (++arrived_ == world_size()) {
      result_ = SameSizes() ? act(views_) : absl::InvalidArgumentError("ranks' sizes or types differ");
      arrived_ = 0;
      ++round_;
      changed_.SignalAll();
      return result_;
    }
    while (round_ == round && aborted_.ok()) changed_.Wait(&mutex_);
    // The next round cannot replace the result before this rank has joined it.
    return round_ == round ? aborted_ : result_;
  }

  void Abort(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (aborted_.ok()) aborted_ = std::move(status);
    changed_.SignalAll();
  }

  absl::Status aborted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return aborted_;
  }

 private:
  bool SameSizes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const BufferView& view : views_) {
      if (view.elements != views_[0].elements || view.dtype != views_[0].dtype) return false;
    }
    return true;
  }

  const int world_size_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<BufferView> views_ ABSL_GUARDED_BY(mutex_);
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, int world_size, std::shared_ptr<Meeting> meeting)
      : rank_(rank), world_size_(world_size), meeting_(std::move(meeting)) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return meeting_->Meet(rank_, buffer, [op](const std::vector<BufferView>& views) {
      if (op == ReduceOp::kAverage && !IsFloatingPoint(views[0].dtype)) {
        return absl::InvalidArgumentError("integers cannot be averaged");
      }
      Reduce(views, op);
      return absl::OkStatus();
    });
  }

  absl::Status Broadcast(BufferView buffer, int root) override {
    return meeting_->Meet(rank_, buffer, [root](const std::vector<BufferView>& views) {
      if (root < 0 || root >= static_cast<int>(views.size())) {
        return absl::InvalidArgumentError(absl::StrCat(root, " is no rank"));
      }
      for (const BufferView& view : views) {
        std::memmove(view.data, views[root].data, view.elements * SizeOf(view.dtype));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Barrier() override {
    return meeting_->Meet(rank_, {}, [](const std::vector<BufferView>&) { return absl::OkStatus(); });
  }

  void Abort(absl::Status status) override { meeting_->Abort(std::move(status)); }
  absl::Status status() const override { return meeting_->aborted(); }

 private:
  const int rank_;
  const int world_size_;
  const std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateThreadCommunicators(int world_size) {
  const auto meeting = std::make_shared<Meeting>(world_size);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < world_size; ++rank) {
    communicators.push_back(std::make_unique<ThreadCommunicator>(rank, world_size, meeting));
  }
  return communicators;
}

}  // namespace tandem
