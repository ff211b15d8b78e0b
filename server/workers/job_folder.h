#ifndef TANDEM_SERVER_WORKERS_JOB_FOLDER_H_
#define TANDEM_SERVER_WORKERS_JOB_FOLDER_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

// The files of a job:
//
//   worker.lock                   locked by the job's live worker (see WorkerLock)
//   worker.log                    stdout and stderr of its workers, appended
//   crash-attempt-N.txt           the crash of attempt N (engine/base/crash_report.h)
//   crash-attempt-N-M.txt         the crash of attempt N's worker M
//   worker-N.lock, worker-N.log   the same for worker N, from 1, if several train the job together
//   job.yaml, model.safetensors, best.safetensors
//                                 its artifacts
//   checkpoint-N.safetensors      its checkpoint of step N (engine/checkpoint/FORMAT.md)
//   attempt-N/launch.textproto    the launch of attempt N's worker (WorkerLaunch)
//   attempt-N/launch-M.textproto  the launch of worker M
//   attempt-N/rendezvous          the folder where the workers find each other
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
