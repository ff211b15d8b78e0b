#ifndef TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
#define TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_

#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"

namespace tandem {

// Removes the folders of deleted jobs with their kept weights, and kept weights that no job needs any more
// (kept_weights.h). Removes folders on its own thread, because large folders take long. Removes weights only
// in RemoveKeptWeights, whose caller knows that no worker is starting from them. Thread-safe.
class FolderRemover {
 public:
  // `jobs_folder` is the parent of the jobs' folders.
  explicit FolderRemover(std::string jobs_folder) : jobs_folder_(std::move(jobs_folder)) {}
  // Calls Stop.
  ~FolderRemover();
  FolderRemover(const FolderRemover&) = delete;
  FolderRemover& operator=(const FolderRemover&) = delete;

  // Starts removing: first the orphans in `folders` (AddOrphans), then added folders. Call at most once.
  // `jobs` must outlive the thread.
  void Start(JobMachine* jobs, std::vector<std::string> folders) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the thread, even in the middle of a folder. The next daemon removes the rest. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a deleted job's folder. Does not block.
  void Add(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds only the kept weights of the job with this folder, for RemoveKeptWeights. Does not block.
  void AddKeptWeights(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the jobs' existing folders. Call before jobs can be created, because a fork's folder in creation
  // looks like a deleted job's.
  std::vector<std::string> ListFolders() const;
  // Adds the folders in `folders` that an earlier daemon did not remove. `folders` come from ListFolders. A
  // folder without a job that was never deleted, for example after a restoration, stays with its kept
  // weights: it may have models.
  void AddOrphans(JobMachine* jobs, const std::vector<std::string>& folders) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for kept weights.
  void AddKeptOrphans(JobMachine* jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveKeptWeights() ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes everything that was added, and then returns. Not together with the thread.
  void RemoveAll() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !paths_.empty(); }
  // Removes a file or a folder, until Stop.
  void Remove(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopping() ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string jobs_folder_;
  Mutex mutex_;
  // Folders, and the weights that are removed with them.
  std::deque<std::string> paths_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> kept_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
