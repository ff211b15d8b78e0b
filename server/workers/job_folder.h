#ifndef TANDEM_SERVER_WORKERS_JOB_FOLDER_H_
#define TANDEM_SERVER_WORKERS_JOB_FOLDER_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

// Where the files of one job stand:
//   worker.lock                   locked by the job's live worker (see WorkerLock)
//   worker.log                    what its workers wrote to stdout and stderr, appended
//   crash-attempt-N.txt           where run N crashed (engine/base/crash_report.h); crash-attempt-N-M.txt:
//   its
//                                 worker M
//   worker-N.lock, worker-N.log   likewise of worker N, from 1, where several train the job together
//   job.yaml, model.safetensors, best.safetensors
//                                 what it made (artifacts)
//   checkpoint-N.safetensors      its checkpoints, of step N (engine/checkpoint/FORMAT.md)
//   attempt-N/launch.textproto    what run N of the worker was started with (WorkerLaunch)
//   attempt-N/launch-N.textproto  likewise of the other workers
//   attempt-N/rendezvous          a folder in which they find each other
//   attempt-N/spool               its events until the daemon has them (see spool.h)
class JobFolder {
 public:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string LockPath(int worker = 0) const { return absl::StrCat(path_, "/worker", Of(worker), ".lock"); }
  std::string LogPath(int worker = 0) const { return absl::StrCat(path_, "/worker", Of(worker), ".log"); }
  std::string AttemptFolder(int attempt) const { return absl::StrCat(path_, "/attempt-", attempt); }
  std::string LaunchPath(int attempt, int worker = 0) const {
    return absl::StrCat(AttemptFolder(attempt), "/launch", Of(worker), ".textproto");
  }
  std::string RendezvousFolder(int attempt) const {
    return absl::StrCat(AttemptFolder(attempt), "/rendezvous");
  }
  std::string CrashReportPath(int attempt, int worker = 0) const {
    return absl::StrCat(path_, "/crash-attempt-", attempt, Of(worker), ".txt");
  }
  std::string SpoolPath(int attempt) const { return absl::StrCat(AttemptFolder(attempt), "/spool"); }

 private:
  static std::string Of(int worker) { return worker == 0 ? "" : absl::StrCat("-", worker); }

  std::string path_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_FOLDER_H_
