#ifndef TANDEM_SERVER_WORKERS_JOB_DISK_USE_H_
#define TANDEM_SERVER_WORKERS_JOB_DISK_USE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
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

// How much of the disk each user's jobs take: their folders, and the weights that they keep
// (kept_weights.h). They are measured by a thread of its own: those of jobs that have not ended each minute,
// others when they have, so that asking costs nothing, and the answer is a minute old at most. Those of
// deleted jobs count until they are removed. A file counts what it takes on the disk: a worker that was taken
// over can give it any size. A model or a checkpoint of which several jobs have a name (a hard link) counts
// once for each user who has such a job. Thread-safe.
class JobDiskUse final : public JobObserver {
 public:
  struct Owned {
    std::string job_id;
    std::string user;
    // Its folder may still change.
    bool is_active = false;
  };

  // `jobs_folder` has the jobs' folders, by their ids; no honest job has more than `most_entries` in its own.
  explicit JobDiskUse(std::string jobs_folder, absl::Duration interval = absl::Minutes(1),
                      int most_entries = 100'000)
      : jobs_folder_(std::move(jobs_folder)), interval_(interval), most_entries_(most_entries) {}
  // Stop().
  ~JobDiskUse() override { Stop(); }

  // Measures from now on. `list` gives the jobs that there are, and is called once, on the thread; call this
  // when it hears of jobs as an observer. What is not measured yet counts nothing.
  void Start(std::function<std::vector<Owned>()> list);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t BytesOf(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a job that the user deleted still counts, as its folder is not gone yet.
  bool IsRemoving(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);

  // JobObserver.
  void OnQueued(const v1::Job& job) override;
  void OnPaused(const v1::Job& job) override;
  void OnTerminal(const v1::Job& job) override;
  void OnDeleted(const v1::Job& job) override;

 private:
  // What a file has one of, whatever its names: its device and its inode.
  using FileId = std::pair<dev_t, ino_t>;
  // What one job has.
  struct Files {
    // Models and checkpoints, which may have names elsewhere too, with their bytes.
    std::vector<std::pair<FileId, int64_t>> weights;
    // Of all other files.
    int64_t bytes = 0;
  };
  struct Use {
    std::string user;
    Files files;
    // How often it is still measured; active jobs for ever, and deleted ones until their folders are gone.
    int measurements = 1;
    bool is_active = false;
    bool is_deleted = false;
  };

  // What a user's jobs have.
  struct Total {
    struct Weights {
      int64_t bytes = 0;
      // Among the user's jobs.
      int names = 0;
    };
    absl::flat_hash_map<FileId, Weights> weights;
    // Of all files, each once; of any number of jobs and files, each of which may count very much.
    absl::int128 bytes = 0;
  };

  // What a job has; where it has no folder, nothing and false.
  bool Look(const std::string& job_id, Files* files) const;
  void Run(const std::function<std::vector<Owned>()>& list);
  void Add(const Owned& owned, bool replaces) ABSL_LOCKS_EXCLUDED(mutex_);
  void Settle(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Measure(const std::string& job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of deleted jobs whose folders are gone.
  void ForgetRemoved() ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a job's files to those of its user, and the reverse.
  void Count(const Use& use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Uncount(const Use& use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string jobs_folder_;
  const absl::Duration interval_;
  const int most_entries_;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // By job.
  absl::flat_hash_map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);
  // By user.
  absl::flat_hash_map<std::string, Total> totals_ ABSL_GUARDED_BY(mutex_);
  // Of Start and Stop alone.
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_DISK_USE_H_
