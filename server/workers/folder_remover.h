#ifndef TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
#define TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"

namespace tandem {

// Removes the folders of jobs that were deleted. Thread-safe.
class FolderRemover {
 public:
  // Whose subfolders are the jobs'.
  explicit FolderRemover(std::string jobs_folder) : jobs_folder_(std::move(jobs_folder)) {}

  // Remembers a folder for RemoveAll. Does not block.
  void Add(std::string folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the folders of deleted jobs that an earlier daemon did not come to remove. Folders that belong to no
  // job for another reason, as where the database was replaced, stay: there may be models in them.
  void AddOrphans(JobMachine* jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what was added, with all that is in it.
  void RemoveAll() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string jobs_folder_;
  Mutex mutex_;
  std::vector<std::string> folders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_FOLDER_REMOVER_H_
