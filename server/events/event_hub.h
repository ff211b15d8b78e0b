#ifndef TANDEM_SERVER_EVENTS_EVENT_HUB_H_
#define TANDEM_SERVER_EVENTS_EVENT_HUB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/events/subscription.h"
#include "server/store/store.h"

namespace tandem {

// Gives watchers what was committed: commit, then publish; replay, then tail. Thread-safe.
//
// Publishing never waits for a watcher. Each has a bounded buffer; one that is too slow for it loses the
// buffer's help, not entries: it goes on by reading the log from the store.
class EventHub {
 public:
  struct Options {
    // Threads that read the log and run callbacks; at least 1.
    int threads = 2;
    // Entries that a watcher may be behind before it reads the log; at least 1.
    int buffer_size = 256;
    // Entries in one read of the log; at least 1.
    int read_size = 256;
  };

  // `store` must outlive the hub.
  explicit EventHub(Store* store);
  EventHub(Store* store, const Options& options);
  // Close(UNAVAILABLE), and waits for callbacks that run. Subscriptions may outlive the hub. Not from a
  // callback.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // A job's events after a sequence number (0: all). Errors come with the first Next.
  std::unique_ptr<EventSubscription> Subscribe(const std::string& job_id, int64_t after_sequence);
  // State changes of all jobs after a cursor (0: all; -1: only those published from now on).
  std::unique_ptr<ChangeSubscription> SubscribeChanges(int64_t after_cursor);

  // The newest change's cursor: SubscribeChanges(-1) begins after it.
  int64_t newest_cursor() const;

  // Ends all subscriptions, present and later, with this status, at once. The first call decides. Does not
  // wait for callbacks that run.
  void Close(const absl::Status& status);

  // For the writer of the log alone, in the log's order, after the commit.
  void Publish(const std::string& job_id, std::shared_ptr<const v1::JobEvent> event);
  void PublishChange(std::shared_ptr<const JobChange> change);
  // The job and its log are gone: watchers get what is in their buffers, then NOT_FOUND.
  void PublishDeleted(const std::string& job_id);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_EVENT_HUB_H_
