#ifndef TANDEM_SERVER_CLUSTERS_LAUNCH_PREPARER_H_
#define TANDEM_SERVER_CLUSTERS_LAUNCH_PREPARER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/clusters/launcher.h"
#include "server/workers/job_folder.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/worker_launcher.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Prepares the files of a cluster's attempt: its folder, its logs and its launch file. Immutable, so
// thread-safe.
class LaunchPreparer {
 public:
  struct Options {
    // The path of tandem-worker on the nodes.
    std::string worker_program;
    // The daemon's state folder. Paths below it are given to the workers without symbolic links.
    std::string state_folder;
    // How WorkerLaunch is made. Its daemon_target is the TCP listener's.
    WorkerLauncher::Options launch;
    // WorkerLaunch.daemon_certificate.
    std::string daemon_certificate;
    // The folder where workers keep the fastest algorithms; all nodes see it.
    std::string algorithms_folder;
    SandboxOptions sandbox = {};
  };

  explicit LaunchPreparer(Options options)
      : options_(std::move(options)), worker_launcher_(options_.launch) {}

  // Prepares the attempt Job.attempt of `job`, which has its whole spec. `folder` is the job's folder as the
  // nodes see it. `secret` is the attempt's. Errors are those of the files, the data set and the initial
  // weights. Idempotent.
  absl::StatusOr<LaunchRequest> Prepare(const v1::Job& job, const JobFolder& folder,
                                        const std::string& secret) const;

 private:
  const Options options_;
  const WorkerLauncher worker_launcher_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_LAUNCH_PREPARER_H_
