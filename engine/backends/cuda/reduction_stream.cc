#include "engine/backends/cuda/reduction_stream.h"

#include "engine/base/status_macros.h"

namespace tandem::cuda {

absl::StatusOr<Stream> ReductionStream::Begin() {
  if (stream_ == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(ready_, Event::Create());
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Event> newest, Event::Create());
    TANDEM_ASSIGN_OR_RETURN(stream_, OwnedStream::Create(/*urgent=*/true));
    MutexLock lock(&mutex_);
    newest_ = std::move(newest);
  }
  TANDEM_RETURN_IF_ERROR(ready_->Record(device_->stream->get()));
  TANDEM_RETURN_IF_ERROR(ready_->Hold(stream_->get()));
  return stream_->get();
}

absl::StatusOr<int64_t> ReductionStream::End() {
  std::unique_ptr<Event> end;
  if (free_.empty()) {
    TANDEM_ASSIGN_OR_RETURN(end, Event::Create());
  } else {
    end = std::move(free_.back());
    free_.pop_back();
  }
  {
    MutexLock lock(&mutex_);
    TANDEM_RETURN_IF_ERROR(newest_->Record(stream_->get()));
  }
  TANDEM_RETURN_IF_ERROR(end->Record(stream_->get()));
  going_on_.push_back({++begun_, std::move(end)});
  return begun_;
}

absl::Status ReductionStream::Await(int64_t begun) {
  // The last of them ends after the others.
  absl::Status status;
  while (!going_on_.empty() && going_on_.front().number <= begun) {
    std::unique_ptr<Event> end = std::move(going_on_.front().end);
    going_on_.pop_front();
    const bool is_last = going_on_.empty() || going_on_.front().number > begun;
    if (is_last) status = end->Hold(device_->stream->get());
    free_.push_back(std::move(end));
  }
  return status;
}

absl::StatusOr<bool> ReductionStream::Reached() const {
  MutexLock lock(&mutex_);
  return newest_ == nullptr ? absl::StatusOr<bool>(true) : newest_->Reached();
}

}  // namespace tandem::cuda
