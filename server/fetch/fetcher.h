#ifndef TANDEM_SERVER_FETCH_FETCHER_H_
#define TANDEM_SERVER_FETCH_FETCHER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "server/admission/remote_data.h"
#include "server/fetch/backoff.h"
#include "server/fetch/cache.h"
#include "server/fetch/fetch_item.h"
#include "server/fetch/fetch_plan.h"
#include "server/fetch/fetch_policy.h"
#include "server/fetch/s3_config.h"
#include "server/fetch/transport.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Fetches data over HTTP and from S3 into a cache, on its own threads. Servers may be slow, so each user gets
// a share of the threads, and users take turns. Data that several users ask for is fetched once, on any of
// their shares. Each waiter gets the outcome. If nobody waits, the next caller gets the outcome. Thread-safe.
class Fetcher : public RemoteData {
 public:
  struct Options {
    FetchPolicy policy;
    // The absolute parent folder of public sets, each in a folder of its name.
    std::string public_folder;
    // The URL "https://host/path" that is tried first for public sets, as "<set>/<file>" below it. Empty:
    // none.
    std::string mirror;
    Environment environment = ProcessEnvironment;
    // The most concurrent downloads in total, for one user, and for one URL.
    int threads = 16;
    int threads_per_user = 4;
    int threads_per_url = 4;
    // The most URLs of one user that are being fetched, that wait, or that have a kept outcome. A new URL
    // replaces the oldest outcome.
    int urls_per_user = 256;
    // The bytes that the planned files of a user's URLs may take. At or above this limit, the user's other
    // patterns and folders wait for their plans. One plan may exceed the limit.
    int64_t plan_bytes_per_user = int64_t{64} << 20;
    RetryPolicy retry;
    const Clock* clock = Clock::Real();
    Env* env = Env::Real();
    // After a check, a URL is not checked for changes again within this time.
    absl::Duration fresh = absl::Seconds(30);
    // An outcome that nobody waited for is kept at most this long.
    absl::Duration keep_outcome = absl::Minutes(10);
  };

  // `cache` and `transport` must outlive this object.
  Fetcher(Options options, Cache* cache, Transport* transport);
  // Calls Stop.
  ~Fetcher() override;
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  void EnsureUrls(std::vector<FieldUrl> urls, const std::string& user, absl::Duration wait,
                  UrlsDone done) override;
  absl::StatusOr<std::string> LocalPath(const std::string& url, PathKind kind) const override;
  void FetchPublicSet(const std::string& name, const std::string& user, absl::Duration wait,
                      absl::AnyInvocable<void(absl::Status)> done) override;

  // Adds the contents that a spec with pinned URLs names.
  static void AddNeeded(const v1::DatasetSpec& spec, Cache::Needed* needed);
  // Adds the contents that a job names, in its data set and its initial weights.
  static void AddNeeded(const v1::JobSpec& spec, Cache::Needed* needed);

  // Stops all fetches; waiters get UNAVAILABLE. A later request continues a stopped fetch. Idempotent.
  void Stop();

 private:
  struct Item;
  struct Waiter;
  // An item of a request.
  struct Part {
    std::string field;  // The field that names it.
    std::string file;   // The name of a public set's file; empty for other items.
    std::shared_ptr<Item> item;
  };
  using Parts = std::vector<Part>;

  // Returns the existing or a new item for a URL, and adds `user` to its users. `addresses` are those of a
  // public set's file. RESOURCE_EXHAUSTED with the reason TOO_MANY_FETCHES if the user already has the
  // permitted number of unfinished items.
  absl::StatusOr<std::shared_ptr<Item>> FindOrAdd(const DataUrl& url, PathKind kind, const std::string& user,
                                                  std::vector<std::string> addresses)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the oldest outcome of a user if the user has the permitted number of items. RESOURCE_EXHAUSTED if
  // all these items are unfinished.
  absl::Status MakeRoom(const std::string& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `finish` when all parts are complete, when a part has failed, or after `wait`.
  void Await(Parts parts, absl::Duration wait, bool background,
             absl::AnyInvocable<void(absl::Status)> finish);
  absl::Status Install(const std::string& name, const Parts& parts) ABSL_LOCKS_EXCLUDED(install_mutex_);

  // A thread's next work: plan an item if `file` is empty, or fetch a file.
  struct Step {
    std::shared_ptr<Item> item;
    std::optional<size_t> file;
    std::string user;  // The user whose share pays.
  };
  // The items, running steps and plans of a user.
  struct Share {
    // The user's queued items, each once.
    std::deque<std::shared_ptr<Item>> ready;
    int running = 0;
    // The sum of Item::plan_bytes of the items whose plans this user pays for.
    int64_t plan_bytes = 0;

    bool IsIdle() const { return ready.empty() && running == 0 && plan_bytes == 0; }
  };
  void Work();
  std::optional<Step> NextStep();
  // Handles the result of a step.
  void Settle(const Step& step, absl::StatusOr<std::optional<FetchItem::Entry>> found);
  // Forgets the outcomes that a waiter received.
  void Heard(const Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues an item for its users if a thread can work on it.
  void Offer(const std::shared_ptr<Item>& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes an item from its users' queues.
  void Withdraw(const std::shared_ptr<Item>& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the first queued item of a share that a thread may work on now, or null.
  std::shared_ptr<Item> NextOf(const Share& share) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Changes the bytes that an item's plan takes of its user's limit.
  void Charge(const std::shared_ptr<Item>& item, int64_t plan_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Expire();
  bool Sleep(absl::Duration duration);
  bool HasStep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; }
  bool IsFresh(const FetchItem& item) const ABSL_LOCKS_EXCLUDED(mutex_);
  static absl::Status OutcomeOf(const Parts& parts);
  static FetchProgress ProgressOf(const Parts& parts);

  const Options options_;
  const FetchPolicy public_policy_;  // Also allows the mirror's host.
  Cache* const cache_;
  Transport* const transport_;
  const FetchPlanner planner_;
  const FetchPlanner public_planner_;
  const FetchTools tools_;

  mutable Mutex mutex_;
  bool waiters_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The items in progress, and the items whose outcome nobody received. Keyed by FetchItem::key.
  std::map<std::string, std::shared_ptr<Item>> items_ ABSL_GUARDED_BY(mutex_);
  // Keyed by user.
  std::map<std::string, Share> shares_ ABSL_GUARDED_BY(mutex_);
  // The user of the last step. The next user follows in order.
  std::string last_user_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
  // The times when URLs were last found unchanged.
  std::map<std::string, absl::Duration> checked_ ABSL_GUARDED_BY(mutex_);
  // The names of public sets that are being fetched.
  std::set<std::string> installing_ ABSL_GUARDED_BY(mutex_);

  Mutex install_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCHER_H_
