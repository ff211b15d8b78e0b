#include "engine/collectives/background_communicator.h"

#include <utility>

#include "engine/base/memory_error.h"

namespace tandem {

BackgroundCommunicator::BackgroundCommunicator(std::unique_ptr<Communicator> inner)
    : inner_(std::move(inner)) {}

BackgroundCommunicator::~BackgroundCommunicator() {
  {
    MutexLock lock(&mutex_);
    ends_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status BackgroundCommunicator::AllReduce(BufferView buffer, ReduceOp op) {
  WaitForAll();
  return inner_->AllReduce(buffer, op);
}

absl::Status BackgroundCommunicator::Broadcast(BufferView buffer, int root) {
  WaitForAll();
  return inner_->Broadcast(buffer, root);
}

absl::Status BackgroundCommunicator::Barrier() {
  WaitForAll();
  return inner_->Barrier();
}

void BackgroundCommunicator::Abort(absl::Status status) { inner_->Abort(std::move(status)); }

absl::StatusOr<int64_t> BackgroundCommunicator::BeginAllReduce(BufferView buffer, ReduceOp op) {
  if (!thread_.joinable()) thread_ = std::thread([this] { Reduce(); });
  Reduction reduction = {.buffer = buffer, .op = op};
  std::fegetenv(&reduction.modes);
  MutexLock lock(&mutex_);
  waiting_.push_back(reduction);
  return ++begun_;
}

absl::Status BackgroundCommunicator::Await(int64_t begun) {
  {
    MutexLock lock(&mutex_);
    const auto is_done = [this, begun]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ >= begun; };
    mutex_.Await(absl::Condition(&is_done));
    const auto end = failed_.upper_bound(begun);
    if (failed_.begin() != end) {
      absl::Status first = std::move(failed_.begin()->second);
      failed_.erase(failed_.begin(), end);
      return first;
    }
  }
  return inner_->status();
}

void BackgroundCommunicator::WaitForAll() {
  MutexLock lock(&mutex_);
  const auto none_left = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_.empty(); };
  mutex_.Await(absl::Condition(&none_left));
}

void BackgroundCommunicator::Reduce() {
  const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ends_ || !waiting_.empty(); };
  while (true) {
    Reduction reduction;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_news));
      if (waiting_.empty()) return;
      reduction = waiting_.front();
    }
    std::fesetenv(&reduction.modes);
    absl::Status status = CatchNoMemory([&] { return inner_->AllReduce(reduction.buffer, reduction.op); });
    MutexLock lock(&mutex_);
    waiting_.pop_front();
    ++done_;
    if (!status.ok()) failed_[done_] = std::move(status);
  }
}

}  // namespace tandem
