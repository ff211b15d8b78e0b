#include "server/events/event_hub.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/events/delivery_threads.h"
#include "server/events/subscription_core.h"
#include "server/events/watcher_registry.h"

namespace tandem {
namespace {

// The registry's name for the log of all changes.
constexpr char kAllJobs[] = "";

absl::StatusOr<LogPage<v1::JobEvent>> ReadEvents(Store* store, const std::string& job_id, int64_t after,
                                                 const EventHub::Options& options) {
  TANDEM_ASSIGN_OR_RETURN(EventPage page,
                          store->ReadEvents(job_id, after, options.read_size, options.buffer_bytes));
  LogPage<v1::JobEvent> log;
  log.newest = page.last_sequence;
  log.ended = page.ended;
  for (v1::JobEvent& event : page.events) {
    log.entries.push_back(EntryOf(std::make_shared<const v1::JobEvent>(std::move(event))));
  }
  return log;
}

absl::StatusOr<LogPage<JobChange>> ReadChanges(Store* store, int64_t after,
                                               const EventHub::Options& options) {
  TANDEM_ASSIGN_OR_RETURN(ChangePage page,
                          store->ReadChanges(after, options.read_size, options.buffer_bytes));
  LogPage<JobChange> log;
  log.newest = page.newest_cursor;
  for (JobChange& change : page.changes) {
    log.entries.push_back(EntryOf(std::make_shared<const JobChange>(std::move(change))));
  }
  return log;
}

}  // namespace

class EventHub::Impl {
 public:
  Impl(Store* store, const Options& options)
      : store_(store), options_(options), threads_(std::make_shared<DeliveryThreads>(options.threads)) {
    // After a failed read, each watcher gets the error with its first read.
    if (absl::StatusOr<ChangePage> page = store->ReadChanges(0, 0); page.ok())
      newest_cursor_ = page->newest_cursor;
  }

  ~Impl() {
    Close(absl::UnavailableError("the daemon is shutting down"));
    threads_->Stop();
  }

  std::unique_ptr<EventSubscription> Subscribe(const std::string& job_id, int64_t after_sequence) {
    return Add<v1::JobEvent>(events_, job_id, after_sequence,
                             [store = store_, job_id, options = options_](int64_t after) {
                               return ReadEvents(store, job_id, after, options);
                             });
  }

  std::unique_ptr<ChangeSubscription> SubscribeChanges(int64_t after_cursor) {
    if (after_cursor < 0) after_cursor = newest_cursor_;
    return Add<JobChange>(
        changes_, kAllJobs, after_cursor,
        [store = store_, options = options_](int64_t after) { return ReadChanges(store, after, options); });
  }

  int64_t newest_cursor() const { return newest_cursor_; }

  void Close(const absl::Status& status) {
    events_->Close(status);
    changes_->Close(status);
  }

  void Publish(const std::string& job_id, const std::shared_ptr<const v1::JobEvent>& event) {
    const auto watchers = events_->Of(job_id);
    if (watchers.empty()) return;
    const LogEntry<v1::JobEvent> entry = EntryOf(event);
    for (const auto& core : watchers) core->Publish(entry);
  }

  void PublishChange(const std::shared_ptr<const JobChange>& change) {
    newest_cursor_ = change->cursor;
    const auto watchers = changes_->Of(kAllJobs);
    if (watchers.empty()) return;
    const LogEntry<JobChange> entry = EntryOf(change);
    for (const auto& core : watchers) core->Publish(entry);
  }

  void PublishDeleted(const std::string& job_id) {
    const absl::Status gone = absl::NotFoundError(absl::StrCat("the job \"jobs/", job_id, "\" was deleted"));
    for (const auto& core : events_->Of(job_id)) core->LogGone(gone);
  }

 private:
  template <typename Item>
  std::unique_ptr<Subscription<Item>> Add(const std::shared_ptr<WatcherRegistry<Item>>& registry,
                                          const std::string& log, int64_t after,
                                          absl::AnyInvocable<absl::StatusOr<LogPage<Item>>(int64_t)> read) {
    typename SubscriptionCore<Item>::Options options;
    options.after = after;
    options.buffer_size = options_.buffer_size;
    options.buffer_bytes = options_.buffer_bytes;
    options.read = std::move(read);
    options.unregister = [registry, log](const SubscriptionCore<Item>* core) { registry->Remove(log, core); };
    const auto core = std::make_shared<SubscriptionCore<Item>>(threads_, std::move(options));
    // Register before the first read, so that no entry is missed between the read and later publications.
    registry->Add(log, core);
    return std::make_unique<Subscription<Item>>(core);
  }

  Store* const store_;
  const Options options_;
  const std::shared_ptr<DeliveryThreads> threads_;
  const std::shared_ptr<WatcherRegistry<v1::JobEvent>> events_ =
      std::make_shared<WatcherRegistry<v1::JobEvent>>();
  const std::shared_ptr<WatcherRegistry<JobChange>> changes_ = std::make_shared<WatcherRegistry<JobChange>>();
  // The newest cursor that was published, or committed before the hub existed.
  std::atomic<int64_t> newest_cursor_ = 0;
};

EventHub::EventHub(Store* store) : EventHub(store, Options()) {}
EventHub::EventHub(Store* store, const Options& options) : impl_(std::make_unique<Impl>(store, options)) {}
EventHub::~EventHub() = default;

std::unique_ptr<EventSubscription> EventHub::Subscribe(const std::string& job_id, int64_t after_sequence) {
  return impl_->Subscribe(job_id, after_sequence);
}
std::unique_ptr<ChangeSubscription> EventHub::SubscribeChanges(int64_t after_cursor) {
  return impl_->SubscribeChanges(after_cursor);
}
int64_t EventHub::newest_cursor() const { return impl_->newest_cursor(); }
void EventHub::Close(const absl::Status& status) { impl_->Close(status); }
void EventHub::Publish(const std::string& job_id, std::shared_ptr<const v1::JobEvent> event) {
  impl_->Publish(job_id, event);
}
void EventHub::PublishChange(std::shared_ptr<const JobChange> change) { impl_->PublishChange(change); }
void EventHub::PublishDeleted(const std::string& job_id) { impl_->PublishDeleted(job_id); }

}  // namespace tandem
