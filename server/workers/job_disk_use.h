#ifndef TANDEM_SERVER_WORKERS_JOB_DISK_USE_H_
#define TANDEM_SERVER_WORKERS_JOB_DISK_USE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_observer.h"

namespace tandem {

// Measures the disk space of each user's jobs: their folders and kept weights (kept_weights.h). Measures on
// its own thread: active jobs every minute, other jobs after their end. So BytesOf costs nothing, and its
// answer is at most a minute old. Deleted jobs count until their files are removed. Thread-safe.
//
// A file counts with its space on the disk, because a hijacked worker can give a file any size. A model or
// checkpoint that several jobs share by hard links counts for each of these jobs. So the sum may be too
// large, but never too small, whichever job is deleted first.
class JobDiskUse final : public JobObserver {
 public:
  struct Owned {
    std::string job_id;
    std::string user;
    // True if its folder may still change.
    bool is_active = false;
  };

  // `jobs_folder` has the jobs' folders, named by id. An honest job has at most `most_entries` in its folder.
  explicit JobDiskUse(std::string jobs_folder, absl::Duration interval = absl::Minutes(1),
                      int most_entries = 100'000)
      : jobs_folder_(std::move(jobs_folder)), interval_(interval), most_entries_(most_entries) {}
  // Calls Stop.
  ~JobDiskUse() override { Stop(); }

  // Starts measuring. `list` returns the existing jobs and is called once, on the thread. Call Start when
  // this object already observes jobs. Jobs that were not measured yet count nothing.
  void Start(std::function<std::vector<Owned>()> list);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t BytesOf(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if a deleted job of the user still counts, because its folder still exists.
  bool IsRemoving(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);

  // JobObserver.
  void OnMoved(const v1::Job& job) override;
  void OnDeleted(const v1::Job& job) override;

 private:
  struct Use {
    std::string user;
    int64_t bytes = 0;
    // The number of measurements left. Active jobs are always measured, and deleted jobs until their folders
    // are gone.
    int measurements = 1;
    bool is_active = false;
    bool is_deleted = false;
  };

  // Returns the bytes of a job's files; nullopt if the job has no folder.
  std::optional<int64_t> Look(const std::string& job_id) const;
  void Run(const std::function<std::vector<Owned>()>& list);
  void Add(const Owned& owned, bool replaces) ABSL_LOCKS_EXCLUDED(mutex_);
  void Settle(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Measure(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets deleted jobs whose folders are gone.
  void ForgetRemoved() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string jobs_folder_;
  const absl::Duration interval_;
  const int most_entries_;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Keyed by job.
  absl::flat_hash_map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);
  // The bytes of all jobs of a user. May be very large if many hidden files count.
  absl::flat_hash_map<std::string, absl::int128> totals_ ABSL_GUARDED_BY(mutex_);
  // Only Start and Stop use it.
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_DISK_USE_H_
