#ifndef TANDEM_SERVER_EVENTS_SUBSCRIPTION_CORE_H_
#define TANDEM_SERVER_EVENTS_SUBSCRIPTION_CORE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/events/delivery_threads.h"
#include "server/events/subscription.h"

namespace tandem {

inline int64_t PositionOf(const v1::JobEvent& event) { return event.sequence(); }
inline int64_t PositionOf(const JobChange& change) { return change.cursor; }
inline bool EndsLog(const v1::JobEvent& event) { return event.terminal(); }
inline bool EndsLog(const JobChange&) { return false; }

// An entry of a log, with the size of its serialized event.
template <typename Item>
struct LogEntry {
  std::shared_ptr<const Item> item;
  int64_t bytes = 0;
};

inline LogEntry<v1::JobEvent> EntryOf(std::shared_ptr<const v1::JobEvent> event) {
  const auto bytes = static_cast<int64_t>(event->ByteSizeLong());
  return {std::move(event), bytes};
}
inline LogEntry<JobChange> EntryOf(std::shared_ptr<const JobChange> change) {
  const auto bytes = static_cast<int64_t>(change->event.ByteSizeLong());
  return {std::move(change), bytes};
}

// A part of a log, and the log's state in the same snapshot.
template <typename Item>
struct LogPage {
  std::vector<LogEntry<Item>> entries;
  // The log's newest position.
  int64_t newest = 0;
  // True if no entry will follow `newest`.
  bool ended = false;
};

// The state that a Subscription shares with the hub. Thread-safe.
//
// A watcher is live or behind. A live watcher's buffer holds all entries after its position, and published
// entries are added to the buffer. For a watcher that is behind, published entries are only noted, and the
// log is read when the buffer is empty.
//
// A watcher starts behind. It becomes live when a read reaches the log's end and nothing newer was published
// meanwhile. It falls behind when its buffer is full, or when a terminal event is published. An entry may be
// read between its commit and its publication. The publication then drops the entry, because its position is
// not beyond the buffer's.
template <typename Item>
class SubscriptionCore : public Deliverer, public std::enable_shared_from_this<SubscriptionCore<Item>> {
 public:
  using Result = typename Subscription<Item>::Result;
  using Callback = typename Subscription<Item>::Callback;

  struct Options {
    int64_t after = 0;
    size_t buffer_size = 1;
    int64_t buffer_bytes = 0;
    // Reads the next entries after a position: at least one, if any exists.
    absl::AnyInvocable<absl::StatusOr<LogPage<Item>>(int64_t after)> read;
    // Called once, when the watcher is destroyed.
    absl::AnyInvocable<void(const SubscriptionCore*)> unregister;
  };

  SubscriptionCore(std::shared_ptr<DeliveryThreads> threads, Options options);

  // For the watcher. See Subscription.
  void Next(Callback callback);
  void Drop();

  // Gives only this error from now on. Only the first call counts.
  void Stop(absl::Status status);
  // The log was deleted. Gives this error after the buffered entries.
  void LogGone(absl::Status status);
  // Call in the log's order, after each commit.
  void Publish(const LogEntry<Item>& entry);

  // Gives entries as long as the watcher asks for them.
  void Deliver() override;

 private:
  enum class Step { kNothing, kRead, kDeliver };

  // Returns Deliver's next step. For kDeliver, sets the callback and its result.
  Step NextStep(Callback* callback, Result* result);
  // Reads the log, and adds the entries to the buffer.
  void ReadOn();
  bool HasRoomFor(const LogEntry<Item>& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Append(const LogEntry<Item>& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if the caller must call Enqueue after unlocking.
  bool MustEnqueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue();

  const std::shared_ptr<DeliveryThreads> threads_;
  const size_t buffer_size_;
  const int64_t buffer_bytes_;
  // Only Deliver uses it, on one thread at a time.
  absl::AnyInvocable<absl::StatusOr<LogPage<Item>>(int64_t after)> read_;
  // Only Drop uses it.
  absl::AnyInvocable<void(const SubscriptionCore*)> unregister_;

  Mutex mutex_;
  // Entries not given yet, contiguous in the log.
  std::deque<LogEntry<Item>> buffer_ ABSL_GUARDED_BY(mutex_);
  // The sum of the buffered entries' bytes.
  int64_t buffered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The position of the last entry that was given or buffered.
  int64_t end_ ABSL_GUARDED_BY(mutex_);
  // The newest published position.
  int64_t published_ ABSL_GUARDED_BY(mutex_) = 0;
  bool live_ ABSL_GUARDED_BY(mutex_) = false;
  // True if `end_` was compared with the log's end.
  bool checked_ ABSL_GUARDED_BY(mutex_) = false;
  // True if the last entry given or buffered is the log's last entry.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // If not OK, given after the buffer.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // If not OK, given at once.
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  // The outstanding callback of Next; null if none.
  Callback callback_ ABSL_GUARDED_BY(mutex_);
  // True if Deliver is queued or runs.
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  // The thread that runs a callback; none if no callback runs.
  std::thread::id running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_SUBSCRIPTION_CORE_H_
