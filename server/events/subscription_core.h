#ifndef TANDEM_SERVER_EVENTS_SUBSCRIPTION_CORE_H_
#define TANDEM_SERVER_EVENTS_SUBSCRIPTION_CORE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
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

// A piece of a log, and how the log stood in the same snapshot.
template <typename Item>
struct LogPage {
  std::vector<std::shared_ptr<const Item>> items;
  // The log's newest position.
  int64_t newest = 0;
  // Nothing will follow it.
  bool ended = false;
};

// What a Subscription and the hub share. Thread-safe.
//
// A watcher is live or behind. Live: its buffer is all of the log after what it has taken, and what is
// published goes into it. Behind: what is published is only noted, and the log is read when the buffer is
// empty. It begins behind; it becomes live when a read came to the end of the log and nothing newer was
// published meanwhile; it falls behind when its buffer is full. What is committed but not yet published when
// it is read is dropped when it is published, since its position is not beyond the buffer's.
template <typename Item>
class SubscriptionCore : public Deliverer, public std::enable_shared_from_this<SubscriptionCore<Item>> {
 public:
  using Result = typename Subscription<Item>::Result;
  using Callback = typename Subscription<Item>::Callback;

  struct Options {
    int64_t after = 0;
    size_t buffer_size = 1;
    size_t read_size = 1;
    // Reads at most read_size entries after a position.
    absl::AnyInvocable<absl::StatusOr<LogPage<Item>>(int64_t after)> read;
    // Called once, when the watcher goes.
    absl::AnyInvocable<void(const SubscriptionCore*)> unregister;
  };

  SubscriptionCore(std::shared_ptr<DeliveryThreads> threads, Options options);

  // For the watcher; see Subscription.
  void Next(Callback callback);
  void Drop();

  // Nothing more is given but this error, from now on. Only the first call counts.
  void Stop(absl::Status status);
  // The log is gone: an error after what is in the buffer.
  void LogGone(absl::Status status);
  // In the log's order, after the commit.
  void Publish(const std::shared_ptr<const Item>& item);

  // Gives entries while the watcher asks for them.
  void Deliver() override;

 private:
  enum class Step { kNothing, kRead, kDeliver };

  // Says what Deliver is to do next; for kDeliver the callback and what it gets.
  Step NextStep(Callback* callback, Result* result);
  // Reads on and takes in what came.
  void ReadOn();
  void Append(const std::shared_ptr<const Item>& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the caller is to call Enqueue after unlocking.
  bool MustEnqueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue();

  const std::shared_ptr<DeliveryThreads> threads_;
  const size_t buffer_size_;
  const size_t read_size_;
  // Deliver's alone, which runs on one thread at a time.
  absl::AnyInvocable<absl::StatusOr<LogPage<Item>>(int64_t after)> read_;
  // Drop's alone.
  absl::AnyInvocable<void(const SubscriptionCore*)> unregister_;

  Mutex mutex_;
  // Entries not given yet, contiguous in the log.
  std::deque<std::shared_ptr<const Item>> buffer_ ABSL_GUARDED_BY(mutex_);
  // The position up to which entries were given or are in the buffer.
  int64_t end_ ABSL_GUARDED_BY(mutex_);
  // The newest position that was published.
  int64_t published_ ABSL_GUARDED_BY(mutex_) = 0;
  bool live_ ABSL_GUARDED_BY(mutex_) = false;
  // `end_` was compared with the log.
  bool checked_ ABSL_GUARDED_BY(mutex_) = false;
  // The buffer's last entry, or the one given last, is the log's last.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Given after the buffer, where not OK.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Given at once, where not OK.
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  // What Next asked for; null where nothing is asked.
  Callback callback_ ABSL_GUARDED_BY(mutex_);
  // Deliver is queued or runs.
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  // The thread that runs a callback; none where none runs.
  std::thread::id running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_SUBSCRIPTION_CORE_H_
