#ifndef TANDEM_CLIENT_DASHBOARD_JOB_FEED_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_FEED_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// A job's log, read once for all pages that show the job. A thread calls WatchJob and keeps the newest events
// as text. Pages wake once for all events of a short time. The fastest page sets the pace: the thread waits
// before it drops events that no page has taken. Thread-safe.
class JobFeed {
 public:
  // Reads the events after `after` until destruction. The client must outlive this object.
  JobFeed(client::Client* client, std::string name, int64_t after);
  ~JobFeed();
  JobFeed(const JobFeed&) = delete;
  JobFeed& operator=(const JobFeed&) = delete;

  // The part of the log that a page does not have yet.
  struct News {
    // The events in order, as Server-Sent Events named `event` with their sequence numbers as ids.
    std::string text;
    // The sequence number of the text's last event, or of the page's last event.
    int64_t last = 0;
    // True if events between the page's last event and `text` are gone. Then `text` is empty.
    bool is_behind = false;
    // The reason of a lost connection, until the connection is back.
    std::optional<absl::Status> lost;
    // WatchJob's result, if `text` has the last event.
    std::optional<absl::Status> end;
    // For the next call.
    int64_t version = 0;
  };

  // Returns the events after `after` and not after `until`. Waits at most `at_most` while nothing is newer
  // than `version`, the News::version before or -1.
  News Await(int64_t after, int64_t until, int64_t version, absl::Duration at_most)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns true if Await has all events after `after`.
  bool Has(int64_t after) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Observer;
  struct Event {
    int64_t sequence;
    std::string text;
  };

  void Read(int64_t after) ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(const v1::JobEvent& event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Wakes the pages.
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  client::Client* const client_;
  const std::string name_;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Changes with each Publish. A change wakes the pages.
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  // By SteadyNow. The time of the last Publish, and the time for the next. Infinite if nothing is new.
  absl::Duration published_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Duration publish_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The newest event that is not in events_.
  int64_t dropped_ ABSL_GUARDED_BY(mutex_);
  // The newest event that a page has taken.
  int64_t taken_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> lost_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  // Declared last: the thread uses the other members.
  std::thread reader_;
};

// The feeds of the jobs that open pages show. Thread-safe.
class JobFeeds {
 public:
  // The client must outlive this object and its feeds.
  explicit JobFeeds(client::Client* client) : client_(client) {}

  // Returns a feed with all events after `after`: the feed of other pages, or a new feed.
  std::shared_ptr<JobFeed> Join(const std::string& name, int64_t after) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  client::Client* const client_;
  absl::Mutex mutex_;
  std::map<std::string, std::weak_ptr<JobFeed>> feeds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_FEED_H_
