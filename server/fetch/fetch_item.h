#ifndef TANDEM_SERVER_FETCH_FETCH_ITEM_H_
#define TANDEM_SERVER_FETCH_FETCH_ITEM_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "engine/data/source_paths.h"
#include "server/admission/remote_data.h"
#include "server/fetch/backoff.h"
#include "server/fetch/cache.h"
#include "server/fetch/data_url.h"
#include "server/fetch/fetch_plan.h"
#include "tandem/internal/v1/cache.pb.h"

namespace tandem {

// What items need to be fetched. All of it outlives them.
struct FetchTools {
  Cache* cache = nullptr;
  const FetchPlanner* planner = nullptr;
  // Of the files of public sets.
  const FetchPlanner* public_planner = nullptr;
  RetryPolicy retry;
  Env* env = nullptr;
  // Waits; false: the daemon stops.
  std::function<bool(absl::Duration)> sleep;
};

// What one URL leads to, on its way into the cache: first Plan, then FetchFile for each file that is missing,
// in any order and several at once, then Finish; or, after an error, Leave. Its progress can be asked for at
// any time.
class FetchItem {
 public:
  using Entry = internal::v1::CacheEntry;

  // `addresses`: where a public set's file is; empty: at the URL. Its URL then only names it.
  FetchItem(DataUrl url, PathKind kind, std::vector<std::string> addresses);

  const DataUrl& url() const { return url_; }
  // Of the URL, which the cache knows it by.
  const std::string& url_sha256() const { return url_sha256_; }
  // Distinct for what is to be fetched apart.
  const std::string& key() const { return key_; }
  FetchProgress progress() const;
  // It is here: all of it counts as fetched.
  void SetWhole(const Entry& entry);

  // What the cache has of it, where that is what is wanted.
  std::optional<Entry> FindCached(Cache* cache) const;

  // Finds out which files are to be fetched. `fresh`: that what the cache has needs no asking. An entry:
  // nothing has to be fetched, and this is it. Errors as FetchPlanner's, and Cache::Reserve's.
  absl::StatusOr<std::optional<Entry>> Plan(const FetchTools& tools, bool fresh);
  // How many files are missing.
  size_t missing() const { return missing_.size(); }
  // Fetches one of them, by its index below missing(). An entry: the cache has it, and nothing has changed.
  // Errors as Download's.
  absl::StatusOr<std::optional<Entry>> FetchFile(const FetchTools& tools, size_t index);
  // Makes an entry of the files.
  absl::StatusOr<Entry> Finish(const FetchTools& tools);
  // What came may be of use to another try.
  void Leave(Cache* cache);

 private:
  absl::Status PrepareFolder(const FetchTools& tools);
  absl::StatusOr<std::optional<internal::v1::CacheFile>> DownloadFile(const FetchTools& tools,
                                                                      const PlannedFile& planned);
  void Note(const FetchTools& tools, const internal::v1::CacheFile& file) ABSL_LOCKS_EXCLUDED(log_mutex_);

  const DataUrl url_;
  const PathKind kind_;
  const std::vector<std::string> addresses_;
  const std::string url_sha256_;
  const std::string key_;

  // Written by Plan.
  FetchPlan plan_;
  std::optional<Entry> known_;
  std::string folder_;           // Empty: nothing is to be fetched.
  std::vector<size_t> missing_;  // Of plan_.files.
  // Each written by the thread that fetches the file.
  std::vector<internal::v1::CacheFile> files_;
  Mutex log_mutex_;  // Guards no member, but the file of notes in folder_: held while it is written.

  std::atomic<int64_t> bytes_done_ = 0;
  std::atomic<int64_t> bytes_total_ = 0;
  std::atomic<int64_t> files_done_ = 0;
  std::atomic<int64_t> files_total_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCH_ITEM_H_
