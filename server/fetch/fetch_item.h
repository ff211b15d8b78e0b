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

// The objects that a FetchItem uses. They must outlive it.
struct FetchTools {
  Cache* cache = nullptr;
  const FetchPlanner* planner = nullptr;
  // For the files of public sets.
  const FetchPlanner* public_planner = nullptr;
  RetryPolicy retry;
  Env* env = nullptr;
  // Blocks for the duration. Returns false if the daemon stops.
  std::function<bool(absl::Duration)> sleep;
};

// Fetches the content of one URL into the cache. Call Plan first, then FetchFile for each missing file, then
// Finish, and Leave last, also after an error. FetchFile may be called in any order and from several threads
// at once. progress() may be called at any time.
class FetchItem {
 public:
  using Entry = internal::v1::CacheEntry;

  // `addresses` are the addresses of a public set's file, and `url` then only names it. If empty, the file is
  // at `url`.
  FetchItem(DataUrl url, PathKind kind, std::vector<std::string> addresses);

  const DataUrl& url() const { return url_; }
  // The cache's key for the URL.
  const std::string& url_sha256() const { return url_sha256_; }
  // Unique for each separate fetch.
  const std::string& key() const { return key_; }
  FetchProgress progress() const;
  // Returns whether the URL may name many files, because it is a pattern or may be a folder.
  bool may_have_many_files() const { return may_have_many_files_; }
  // Marks all files as fetched.
  void SetWhole(const Entry& entry);

  // Returns the cached entry if it is the wanted kind and content.
  std::optional<Entry> FindCached(Cache* cache) const;

  // Finds the files to fetch. Returns an entry if nothing needs to be fetched. If `fresh`, a cached entry is
  // not checked for changes. Errors as FetchPlanner and Cache::Reserve.
  absl::StatusOr<std::optional<Entry>> Plan(const FetchTools& tools, bool fresh);
  // Returns roughly the bytes of memory that the planned files need until Leave. Call it after Plan.
  int64_t plan_bytes() const;
  // Returns the number of missing files.
  size_t missing() const { return missing_.size(); }
  // Fetches a missing file; `index` is below missing(). Returns an entry if the cached version is still
  // current. Errors as Download.
  absl::StatusOr<std::optional<Entry>> FetchFile(const FetchTools& tools, size_t index);
  // Creates an entry of the files.
  absl::StatusOr<Entry> Finish(const FetchTools& tools);
  // Forgets the plan. Without Finish, keeps the received files for another try.
  void Leave(Cache* cache);

 private:
  absl::Status PrepareFolder(const FetchTools& tools);
  // `index` is that of a file in plan_.files. Returns nullopt if the known or earlier file is still current.
  absl::StatusOr<std::optional<internal::v1::CacheFile>> DownloadFile(const FetchTools& tools, size_t index);
  void Note(const FetchTools& tools, const internal::v1::CacheFile& file) ABSL_LOCKS_EXCLUDED(log_mutex_);

  const DataUrl url_;
  const PathKind kind_;
  const std::vector<std::string> addresses_;
  const std::string url_sha256_;
  const std::string key_;
  const bool may_have_many_files_;

  // Written by Plan.
  FetchPlan plan_;
  std::optional<Entry> known_;
  std::string folder_;           // Empty if nothing needs to be fetched.
  std::vector<size_t> missing_;  // Indices in plan_.files.
  // For each file of a folder without a listing: the file of an earlier fetch, if any.
  std::vector<std::optional<internal::v1::CacheFile>> earlier_;
  // Each element is written by the thread that fetches the file.
  std::vector<internal::v1::CacheFile> files_;
  Mutex log_mutex_;  // Held while the file of notes in folder_ is written. Guards no member.

  std::atomic<int64_t> bytes_done_ = 0;
  std::atomic<int64_t> bytes_total_ = 0;
  std::atomic<int64_t> files_done_ = 0;
  std::atomic<int64_t> files_total_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCH_ITEM_H_
