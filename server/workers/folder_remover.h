#ifndef TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
#define TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"

namespace tandem {

// Removes the folders of jobs that were deleted with the weights that these kept, and kept weights that no
// job needs any more (kept_weights.h). Thread-safe.
class FolderRemover {
 public:
  // Whose subfolders are the jobs'.
  explicit FolderRemover(std::string jobs_folder) : jobs_folder_(std::move(jobs_folder)) {}

  // Remembers a deleted job's folder for RemoveAll. Does not block.
  void Add(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise the weights alone that the job with this folder keeps.
  void AddKeptWeights(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // The jobs' folders that there are. To be called before jobs can be made: the folder of a fork that is
  // being made looks like that of a deleted job.
  std::vector<std::string> ListFolders() const;
  // Adds what an earlier daemon did not come to remove, of `folders`, which were listed in time, and of kept
  // weights. Folders that belong to no job for another reason than
  // that it was deleted, as where the database was replaced, stay with the weights that belong to them: there
  // may be models in them.
  void AddOrphans(JobMachine* jobs, const std::vector<std::string>& folders) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what was added, with all that is in it.
  void RemoveAll() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // AddOrphans of kept weights.
  void AddKeptOrphans(JobMachine* jobs) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string jobs_folder_;
  Mutex mutex_;
  // Files and folders.
  std::vector<std::string> paths_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
