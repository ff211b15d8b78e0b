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
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "tandem/internal/v1/cache.pb.h"

namespace tandem {

// The block of the disk that each file and each folder takes, however small.
inline constexpr int64_t kCacheBlockBytes = 4096;

// Sums the bytes that files take of the disk: their content, and a block for each file and for each folder.
class DiskUse {
 public:
  // Adds a file. Files come in the byte order of their paths, so that all files of a folder follow each
  // other.
  void Add(absl::string_view path, int64_t size_bytes);
  // At most the largest number.
  int64_t bytes() const { return bytes_; }

 private:
  std::string last_path_;
  int64_t bytes_ = 0;
};

// Fetched data on disk. An entry is the content of a URL at one time, a file or all files below a prefix. An
// entry never changes. The folder has:
//
//   entries/<id>/entry.json   internal.v1.CacheEntry; written last
//   entries/<id>/files/...    the file, or the folder's files
//   entries/<id>/used         its time of change is the entry's last use
//   partial/<key>/...         an unfinished fetch
//
// The files stay below `most_bytes`, in blocks of the disk (DiskUse). To make room, the cache first removes
// abandoned fetches, then the entries that were unused for longest. It never removes entries that somebody
// needs. Thread-safe.
class Cache {
 public:
  // The contents that jobs and data sets name: pairs of url_sha256 and sha256.
  using Needed = std::set<std::pair<std::string, std::string>>;

  struct Options {
    std::string folder;  // Absolute. Created if missing.
    int64_t most_bytes = 0;
    // Called before a removal, without the cache's lock. May read the database. After an error, nothing is
    // removed.
    std::function<absl::StatusOr<Needed>()> needed;
    const Clock* clock = Clock::Real();
    Env* env = Env::Real();
    // An entry is kept this long after its last use, because a job that names it may be about to start.
    absl::Duration keep_after_use = absl::Minutes(10);
    // Older abandoned fetches are removed by Open.
    absl::Duration keep_partial = absl::Hours(7 * 24);
  };

  // Reads the folder, and removes everything that is no entry and no recent abandoned fetch.
  static absl::StatusOr<std::unique_ptr<Cache>> Open(Options options);

  // Returns the newest entry of a URL, or its entry with this content; nullopt if none. Compares the files'
  // sizes and times of change, and removes a changed entry. Counts as a use.
  std::optional<internal::v1::CacheEntry> Find(const std::string& url_sha256, const std::string& sha256 = "");

  // Returns the absolute path of an entry's file or folder.
  std::string PathOf(const internal::v1::CacheEntry& entry) const;
  // Returns the absolute path of one file of an entry.
  std::string PathOf(const internal::v1::CacheEntry& entry, const internal::v1::CacheFile& file) const;

  // Returns a folder to fetch into. The folder may have files of an earlier try. Only one caller may use a
  // key until Commit or Leave.
  absl::StatusOr<std::string> Begin(const std::string& key);
  // Reserves this many more bytes of the disk; see DiskUse. RESOURCE_EXHAUSTED with the reason CACHE_FULL.
  // The message completes a sentence that begins with a field's name.
  absl::Status Reserve(const std::string& key, int64_t bytes);
  // Creates an entry of `entry.files`, which lie in the folder's "files". If the cache already has this
  // content of the URL, keeps the old files.
  absl::StatusOr<internal::v1::CacheEntry> Commit(const std::string& key, internal::v1::CacheEntry entry);
  // Ends the fetch. The files stay for another try, unless room is needed. Removes a folder without files.
  void Leave(const std::string& key);

  // In bytes of the disk; see DiskUse.
  int64_t used_bytes() const;

 private:
  struct Entry {
    internal::v1::CacheEntry record;
    int64_t disk_bytes = 0;
    // The last use by the wall clock, which orders the uses of several daemons.
    absl::Time used;
    // The last use by Clock::Elapsed(). For an earlier daemon's use, computed from the wall clock, and at
    // most the time of Open.
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
  // Keyed by id.
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Partial> partials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_CACHE_H_
