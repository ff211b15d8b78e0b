#ifndef TANDEM_SERVER_EVENTS_EVENT_HUB_H_
#define TANDEM_SERVER_EVENTS_EVENT_HUB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/events/subscription.h"
#include "server/store/store.h"

namespace tandem {

// Gives watchers the committed entries of the event log. Entries are committed, then published. A watcher
// gets the old entries first, then the new. Thread-safe.
//
// Publishing never blocks on a watcher. The entries and bytes of each watcher's buffer are bounded. A watcher
// that is too slow for its buffer loses no entries: it reads them from the store instead.
class EventHub {
 public:
  struct Options {
    // The number of threads that read the log and run callbacks; at least 1.
    int threads = 2;
    // The most entries in a watcher's buffer; at least 1.
    int buffer_size = 256;
    // The most entries in one read of the log; at least 1.
    int read_size = 256;
    // The most serialized bytes in a watcher's buffer, and in one read of the log. A larger entry has the
    // buffer to itself.
    int64_t buffer_bytes = 256 << 10;
  };

  // `store` must outlive the hub.
  explicit EventHub(Store* store);
  EventHub(Store* store, const Options& options);
  // Calls Close(UNAVAILABLE), and blocks until running callbacks return. Must not be called in a callback.
  // Subscriptions may outlive the hub.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // Subscribes to a job's events after a sequence number. 0: all events.
  std::unique_ptr<EventSubscription> Subscribe(const std::string& job_id, int64_t after_sequence);
  // Subscribes to state changes of all jobs after a cursor. 0: all changes; -1: only changes published from
  // now on.
  std::unique_ptr<ChangeSubscription> SubscribeChanges(int64_t after_cursor);

  // Returns the newest change's cursor. SubscribeChanges(-1) starts after it.
  int64_t newest_cursor() const;

  // Ends all present and later subscriptions with `status`, at once. Only the first call counts. Does not
  // block on running callbacks.
  void Close(const absl::Status& status);

  // Only the log's writer calls these methods, in the log's order, after each commit.
  void Publish(const std::string& job_id, std::shared_ptr<const v1::JobEvent> event);
  void PublishChange(std::shared_ptr<const JobChange> change);
  // The job and its log were deleted. Watchers get their buffered entries, then NOT_FOUND.
  void PublishDeleted(const std::string& job_id);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_EVENT_HUB_H_
