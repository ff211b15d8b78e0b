#ifndef TANDEM_SERVER_WORKERS_JOB_FOLDER_H_
#define TANDEM_SERVER_WORKERS_JOB_FOLDER_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

// Where the files of one job stand:
//   worker.lock                   locked by the job's live worker (see WorkerLock)
//   worker.log                    what its workers wrote to stdout and stderr, appended
//   job.yaml, model.safetensors, best.safetensors
//                                 what it made (artifacts)
//   checkpoint.safetensors        its newest checkpoint (engine/checkpoint/FORMAT.md)
//   attempt-N/launch.textproto    what run N of the worker was started with (WorkerLaunch)
//   attempt-N/spool               its events until the daemon has them (see spool.h)
class JobFolder {
 public:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string LockPath() const { return absl::StrCat(path_, "/worker.lock"); }
  std::string LogPath() const { return absl::StrCat(path_, "/worker.log"); }
  std::string AttemptFolder(int attempt) const { return absl::StrCat(path_, "/attempt-", attempt); }
  std::string LaunchPath(int attempt) const {
    return absl::StrCat(AttemptFolder(attempt), "/launch.textproto");
  }
  std::string SpoolPath(int attempt) const { return absl::StrCat(AttemptFolder(attempt), "/spool"); }

 private:
  std::string path_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_FOLDER_H_
