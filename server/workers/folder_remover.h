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

// Removes the folders of jobs that were deleted with the weights that these kept, and kept weights that no
// job needs any more (kept_weights.h). Folders go on a thread of its own, as what is large takes long;
// weights when its owner says, who knows that no worker begins with them just then. Thread-safe.
class FolderRemover {
 public:
  // Whose subfolders are the jobs'.
  explicit FolderRemover(std::string jobs_folder) : jobs_folder_(std::move(jobs_folder)) {}
  // Stop().
  ~FolderRemover();
  FolderRemover(const FolderRemover&) = delete;
  FolderRemover& operator=(const FolderRemover&) = delete;

  // Begins to remove what is added, beginning with AddOrphans of `folders`. At most once; `jobs` outlives the
  // thread.
  void Start(JobMachine* jobs, std::vector<std::string> folders) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the thread, in the middle of a folder, too: the next daemon goes on with it. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Has a deleted job's folder removed. Does not block.
  void Add(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers the weights alone that the job with this folder keeps, for RemoveKeptWeights. Does not block.
  void AddKeptWeights(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // The jobs' folders that there are. To be called before jobs can be made: the folder of a fork that is
  // being made looks like that of a deleted job.
  std::vector<std::string> ListFolders() const;
  // Adds what an earlier daemon did not come to remove, of `folders`, which were listed in time. Folders that
  // belong to no job for another reason than that it was deleted, as where the database was replaced, stay
  // with the weights that belong to them: there may be models in them.
  void AddOrphans(JobMachine* jobs, const std::vector<std::string>& folders) ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise of kept weights.
  void AddKeptOrphans(JobMachine* jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveKeptWeights() ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes all that was added, and returns then; not beside the thread.
  void RemoveAll() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !paths_.empty(); }
  // A file, or a folder, until there is a stop.
  void Remove(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopping() ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string jobs_folder_;
  Mutex mutex_;
  // Folders, and weights that go with them.
  std::deque<std::string> paths_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> kept_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
