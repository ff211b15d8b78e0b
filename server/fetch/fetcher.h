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

namespace tandem {

// Fetches data over HTTP and from S3 into a cache, on threads of its own, of which each user has a share, and
// for which users take turns: a server may be as slow as whoever named it likes. What several ask for is
// fetched once, on the share of any of them. Those who wait hear of the outcome; where nobody does, the next
// one who asks gets it. Thread-safe.
class Fetcher : public RemoteData {
 public:
  struct Options {
    FetchPolicy policy;
    // Where public sets go, each into a folder of its name. Absolute.
    std::string public_folder;
    // "https://host/path", below which public sets are looked for first, as "<set>/<file>"; empty: none.
    std::string mirror;
    Environment environment = ProcessEnvironment;
    // Files that are fetched at once, and of them, those for one user, and for one URL.
    int threads = 16;
    int threads_per_user = 4;
    int threads_per_url = 4;
    RetryPolicy retry;
    const Clock* clock = Clock::Real();
    Env* env = Env::Real();
    // A URL is not asked again whether it has changed, within this time.
    absl::Duration fresh = absl::Seconds(30);
    // An outcome that nobody waited for is given to who asks within this time.
    absl::Duration keep_outcome = absl::Minutes(10);
  };

  // `cache` and `transport` outlive this.
  Fetcher(Options options, Cache* cache, Transport* transport);
  // Stop().
  ~Fetcher() override;
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  void Ensure(const v1::DatasetSpec& spec, const std::string& user, absl::Duration wait, Done done) override;
  absl::StatusOr<std::string> LocalPath(const std::string& url, PathKind kind) const override;
  void FetchPublicSet(const std::string& name, const std::string& user, absl::Duration wait,
                      absl::AnyInvocable<void(absl::Status)> done) override;

  // Adds what a spec with pinned URLs names.
  static void AddNeeded(const v1::DatasetSpec& spec, Cache::Needed* needed);

  // Ends all fetches, which go on where they were when they are asked for again; who waits hears UNAVAILABLE.
  // Idempotent.
  void Stop();

 private:
  struct Item;
  struct Waiter;
  // Items, each with the field that asks for it.
  using Parts = std::vector<std::pair<std::string, std::shared_ptr<Item>>>;

  // The item for a URL: one that is there, which is then the user's too, or a new one. `addresses`: of a
  // public set's file.
  std::shared_ptr<Item> FindOrAdd(const DataUrl& url, PathKind kind, const std::string& user,
                                  std::vector<std::string> addresses) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `finish` when all parts are here, when one has failed, or after `wait`.
  void Await(Parts parts, absl::Duration wait, bool background,
             absl::AnyInvocable<void(absl::Status)> finish);
  absl::Status Install(const std::string& name, const Parts& parts) ABSL_LOCKS_EXCLUDED(install_mutex_);

  // What a thread is to do next: to find out what an item consists of, or to fetch one of its files.
  struct Step {
    std::shared_ptr<Item> item;
    std::optional<size_t> file;
    std::string user;  // On whose share.
  };
  // Of a user with items that wait or steps that are done.
  struct Share {
    // Those that a thread can do something for, each once.
    std::deque<std::shared_ptr<Item>> ready;
    int running = 0;
  };
  void Work();
  std::optional<Step> NextStep();
  // What came of a step.
  void Settle(const Step& step, absl::StatusOr<std::optional<FetchItem::Entry>> found);
  // Forgets outcomes that a waiter gets.
  void Heard(const Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Offer(const std::shared_ptr<Item>& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes it out of the queues of all its users.
  void Withdraw(const std::shared_ptr<Item>& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayGoOn(const Share& share) const {
    return !share.ready.empty() && share.running < options_.threads_per_user;
  }
  void Expire();
  bool Sleep(absl::Duration duration);
  bool HasStep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; }
  bool IsFresh(const FetchItem& item) const ABSL_LOCKS_EXCLUDED(mutex_);
  static absl::Status OutcomeOf(const Parts& parts);
  static FetchProgress ProgressOf(const Parts& parts);

  const Options options_;
  const FetchPolicy public_policy_;  // The mirror's host too.
  Cache* const cache_;
  Transport* const transport_;
  const FetchPlanner planner_;
  const FetchPlanner public_planner_;
  const FetchTools tools_;

  mutable Mutex mutex_;
  bool waiters_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Those that are being fetched, and those whose outcome nobody has heard.
  std::map<std::string, std::shared_ptr<Item>> items_ ABSL_GUARDED_BY(mutex_);
  // By user.
  std::map<std::string, Share> shares_ ABSL_GUARDED_BY(mutex_);
  // Whose turn it was last; the next one's is next.
  std::string last_user_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
  // When URLs were last found to be as the cache has them.
  std::map<std::string, absl::Duration> checked_ ABSL_GUARDED_BY(mutex_);
  // Public sets that are being fetched.
  std::set<std::string> installing_ ABSL_GUARDED_BY(mutex_);

  Mutex install_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCHER_H_
