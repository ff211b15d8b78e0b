#ifndef TANDEM_SERVER_FETCH_CACHE_H_
#define TANDEM_SERVER_FETCH_CACHE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "tandem/internal/v1/cache.pb.h"

namespace tandem {

// What was fetched, on disk. An entry is what one URL led to at one time, a file or all that lay under a
// prefix; it never changes. In the folder:
//
//   entries/<id>/entry.json   internal.v1.CacheEntry; written last
//   entries/<id>/files/...    the file, or the folder's files
//   entries/<id>/used         its time of change is when the entry was last used
//   partial/<key>/...         what is being fetched, or was when a daemon ended
//
// All of it together stays below a limit: where room is needed, first what was begun and left is removed,
// then the entries that were not used for longest, but none that somebody needs. Thread-safe.
class Cache {
 public:
  // The content that jobs and data sets name: pairs of url_sha256 and sha256.
  using Needed = std::set<std::pair<std::string, std::string>>;

  struct Options {
    std::string folder;  // Absolute; made where it is missing.
    int64_t most_bytes = 0;
    // Asked before something is removed, without the cache's lock; it may read the database. Where it fails,
    // nothing is.
    std::function<absl::StatusOr<Needed>()> needed;
    const Clock* clock = Clock::Real();
    Env* env = Env::Real();
    // What was used within this time is not removed: a job that will name it may be on its way.
    absl::Duration keep_after_use = absl::Minutes(10);
    // What was begun and left alone for so long is removed when the cache is opened.
    absl::Duration keep_partial = absl::Hours(7 * 24);
  };

  // Reads what there is, and removes what is no entry.
  static absl::StatusOr<std::unique_ptr<Cache>> Open(Options options);

  // An entry of this URL, the newest, or that of this content; none where there is none. It is checked
  // against its files' sizes and times of change, and removed where somebody touched them. Counts as a use.
  std::optional<internal::v1::CacheEntry> Find(const std::string& url_sha256, const std::string& sha256 = "");

  // The absolute path of an entry's file or folder.
  std::string PathOf(const internal::v1::CacheEntry& entry) const;
  // That of one of its files.
  std::string PathOf(const internal::v1::CacheEntry& entry, const internal::v1::CacheFile& file) const;

  // A folder to fetch into, with what was left in it; one user at a time. Until Commit or Leave.
  absl::StatusOr<std::string> Begin(const std::string& key);
  // Makes room for so many bytes more in it. RESOURCE_EXHAUSTED, with the reason CACHE_FULL, in words that
  // follow a field's name.
  absl::Status Reserve(const std::string& key, int64_t bytes);
  // Makes an entry of `entry.files`, which lie in the folder's "files". Another of the same URL and content
  // is kept in its place.
  absl::StatusOr<internal::v1::CacheEntry> Commit(const std::string& key, internal::v1::CacheEntry entry);
  // What is in the folder stays for another try, unless room is needed.
  void Leave(const std::string& key);

  int64_t used_bytes() const;

 private:
  struct Entry {
    internal::v1::CacheEntry record;
    // By the clock, which orders uses of several daemons.
    absl::Time used;
    // By Clock::Elapsed(). Of an earlier daemon's use what the clock says, and not later than when it was
    // found.
    absl::Duration used_at;
  };
  struct Partial {
    int64_t bytes = 0;
    bool active = false;
  };

  explicit Cache(Options options) : options_(std::move(options)) {}
  absl::Status Scan();
  std::string EntryFolder(const std::string& id) const { return options_.folder + "/entries/" + id; }
  std::string PartialFolder(const std::string& key) const { return options_.folder + "/partial/" + key; }
  bool IsWhole(const internal::v1::CacheEntry& entry) const;
  void Touch(const std::string& id, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t UsedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  // By id.
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Partial> partials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_CACHE_H_
