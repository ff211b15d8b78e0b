#include "server/rpc/active_streams.h"

#include <utility>
#include <vector>

#include "engine/base/clock.h"

namespace tandem {

int64_t ActiveStreams::Add(std::weak_ptr<Stream> stream, const Caller& caller) {
  std::optional<absl::Status> ended;
  int64_t number;
  {
    MutexLock lock(&mutex_);
    number = next_number_++;
    ended = ended_;
    if (!ended.has_value()) streams_[number] = {.stream = stream, .caller = caller};
  }
  if (ended.has_value()) {
    if (const std::shared_ptr<Stream> open = stream.lock()) open->End(*ended);
  }
  return number;
}

void ActiveStreams::Remove(int64_t number) {
  MutexLock lock(&mutex_);
  streams_.erase(number);
}

void ActiveStreams::EndAll(const absl::Status& status) {
  std::vector<std::shared_ptr<Stream>> open;
  {
    MutexLock lock(&mutex_);
    if (ended_.has_value()) return;
    ended_ = status;
    for (const auto& [number, one] : streams_) {
      if (std::shared_ptr<Stream> shared = one.stream.lock()) open.push_back(std::move(shared));
    }
    streams_.clear();
  }
  // Unlocked, because a stream that ends may remove itself.
  for (const std::shared_ptr<Stream>& stream : open) stream->End(status);
}

void ActiveStreams::EndWhere(const std::function<absl::Status(const Caller&)>& check) {
  std::vector<std::pair<int64_t, Open>> all;
  {
    MutexLock lock(&mutex_);
    all.assign(streams_.begin(), streams_.end());
  }
  const absl::Duration now = Clock::Real()->Elapsed();
  for (const auto& [number, one] : all) {
    const std::shared_ptr<Stream> open = one.stream.lock();
    if (open == nullptr) continue;
    if (one.is_ending || open->IsOverdue(now)) {
      open->Cut();
      continue;
    }
    const absl::Status status = check(one.caller);
    if (status.ok()) continue;
    {
      MutexLock lock(&mutex_);
      const auto still = streams_.find(number);
      if (still != streams_.end()) still->second.is_ending = true;
    }
    open->End(status);
  }
}

void ActiveStreams::AwaitNone(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &ActiveStreams::IsEmpty), timeout);
}

}  // namespace tandem
