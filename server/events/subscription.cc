#include "server/events/subscription.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/events/subscription_core.h"

namespace tandem {
namespace {

// After this many entries, other watchers get the thread.
constexpr int kTurn = 64;

}  // namespace

template <typename Item>
SubscriptionCore<Item>::SubscriptionCore(std::shared_ptr<DeliveryThreads> threads, Options options)
    : threads_(std::move(threads)),
      buffer_size_(options.buffer_size),
      buffer_bytes_(options.buffer_bytes),
      read_(std::move(options.read)),
      unregister_(std::move(options.unregister)),
      end_(options.after) {}

template <typename Item>
void SubscriptionCore<Item>::Next(Callback callback) {
  bool enqueue;
  {
    MutexLock lock(&mutex_);
    callback_ = std::move(callback);
    enqueue = MustEnqueue();
  }
  if (enqueue) Enqueue();
}

template <typename Item>
void SubscriptionCore<Item>::Drop() {
  unregister_(this);
  Callback dropped;  // Destroyed after the lock is released.
  MutexLock lock(&mutex_);
  dropped = std::move(callback_);
  callback_ = nullptr;
  if (stopped_.ok()) stopped_ = absl::CancelledError("the subscription ended");
  if (running_ == std::this_thread::get_id()) return;
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == std::thread::id(); };
  mutex_.Await(absl::Condition(&idle));
}

template <typename Item>
void SubscriptionCore<Item>::Stop(absl::Status status) {
  bool enqueue;
  {
    MutexLock lock(&mutex_);
    if (!stopped_.ok()) return;
    stopped_ = std::move(status);
    buffer_.clear();
    buffered_bytes_ = 0;
    enqueue = MustEnqueue();
  }
  if (enqueue) Enqueue();
}

template <typename Item>
void SubscriptionCore<Item>::LogGone(absl::Status status) {
  bool enqueue;
  {
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    enqueue = MustEnqueue();
  }
  if (enqueue) Enqueue();
}

template <typename Item>
void SubscriptionCore<Item>::Publish(const LogEntry<Item>& entry) {
  bool enqueue = false;
  {
    MutexLock lock(&mutex_);
    if (!stopped_.ok() || !failure_.ok() || ended_) return;
    published_ = PositionOf(*entry.item);
    if (live_) {
      // Only a read of the log says if a terminal event is the last: the job may have been resumed since.
      live_ = HasRoomFor(entry) && !EndsLog(*entry.item);
      if (live_) Append(entry);
    }
    enqueue = MustEnqueue();
  }
  if (enqueue) Enqueue();
}

template <typename Item>
void SubscriptionCore<Item>::Deliver() {
  for (int turn = 0; turn < kTurn; ++turn) {
    Callback callback;
    Result result = std::nullopt;
    switch (NextStep(&callback, &result)) {
      case Step::kNothing:
        return;
      case Step::kRead:
        ReadOn();
        break;
      case Step::kDeliver: {
        callback(std::move(result));
        callback = nullptr;
        MutexLock lock(&mutex_);
        running_ = std::thread::id();
        break;
      }
    }
  }
  Enqueue();
}

template <typename Item>
typename SubscriptionCore<Item>::Step SubscriptionCore<Item>::NextStep(Callback* callback, Result* result) {
  MutexLock lock(&mutex_);
  if (callback_ == nullptr) {
    scheduled_ = false;
    return Step::kNothing;
  }
  if (!stopped_.ok()) {
    *result = stopped_;
  } else if (!buffer_.empty()) {
    *result = std::move(buffer_.front().item);
    buffered_bytes_ -= buffer_.front().bytes;
    buffer_.pop_front();
  } else if (ended_) {
    *result = std::nullopt;
  } else if (!failure_.ok()) {
    *result = failure_;
  } else if (!live_) {
    return Step::kRead;
  } else {
    scheduled_ = false;
    return Step::kNothing;
  }
  *callback = std::move(callback_);
  callback_ = nullptr;
  running_ = std::this_thread::get_id();
  return Step::kDeliver;
}

template <typename Item>
void SubscriptionCore<Item>::ReadOn() {
  int64_t after;
  {
    MutexLock lock(&mutex_);
    after = end_;
  }
  absl::StatusOr<LogPage<Item>> page = read_(after);
  MutexLock lock(&mutex_);
  if (!page.ok()) {
    if (failure_.ok()) failure_ = page.status();
    return;
  }
  if (!checked_ && end_ > page->newest) {
    failure_ =
        absl::OutOfRangeError(absl::StrCat("cannot send the entries after ", end_, ": the newest entry is ",
                                           page->newest, "; ask from a smaller number"));
    return;
  }
  checked_ = true;
  for (const LogEntry<Item>& entry : page->entries) Append(entry);
  // The next read either reaches the log's end or finds nothing, because the newest changes were deleted.
  if (!page->entries.empty() && PositionOf(*page->entries.back().item) < page->newest) return;
  // A terminal event may have later events, for example if the job was resumed. Only the log as a whole says
  // if it has ended.
  if (page->ended && published_ <= page->newest) ended_ = true;
  live_ = published_ <= page->newest;
}

template <typename Item>
bool SubscriptionCore<Item>::HasRoomFor(const LogEntry<Item>& entry) const {
  if (buffer_.empty()) return true;
  return buffer_.size() < buffer_size_ && buffered_bytes_ + entry.bytes <= buffer_bytes_;
}

template <typename Item>
void SubscriptionCore<Item>::Append(const LogEntry<Item>& entry) {
  if (PositionOf(*entry.item) <= end_) return;
  end_ = PositionOf(*entry.item);
  buffered_bytes_ += entry.bytes;
  buffer_.push_back(entry);
}

template <typename Item>
bool SubscriptionCore<Item>::MustEnqueue() {
  if (callback_ == nullptr || scheduled_) return false;
  scheduled_ = true;
  return true;
}

template <typename Item>
void SubscriptionCore<Item>::Enqueue() {
  // A callback may drop the last other reference.
  const std::shared_ptr<SubscriptionCore> self = this->shared_from_this();
  if (!threads_->Enqueue(self)) Deliver();
}

template <typename Item>
Subscription<Item>::Subscription(std::shared_ptr<SubscriptionCore<Item>> core) : core_(std::move(core)) {}

template <typename Item>
Subscription<Item>::~Subscription() {
  core_->Drop();
}

template <typename Item>
void Subscription<Item>::Next(Callback callback) {
  core_->Next(std::move(callback));
}

template <typename Item>
void Subscription<Item>::Cancel() {
  core_->Stop(absl::CancelledError("the subscription was cancelled"));
}

template class SubscriptionCore<v1::JobEvent>;
template class SubscriptionCore<JobChange>;
template class Subscription<v1::JobEvent>;
template class Subscription<JobChange>;

}  // namespace tandem
