#ifndef TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_
#define TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_process.h"
#include "server/workers/worker_session.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The state of a worker, or of a group of workers that train a job, from the start to the return of its
// lease. The supervisor's lock guards the members without another note.
struct SupervisedWorker {
  enum class Phase {
    kLaunching,  // the monitor must start its process
    kResolving,  // its processes run, and the monitor must find them
    kRunning,    // it has a process
    kEnded,      // it has no process, or never had one
  };

  // The next members never change.
  std::string job_id;
  int32_t attempt = 0;
  JobFolder folder{""};
  int workers = 1;   // The number of processes that train together.
  int replicas = 1;  // The number of replicas of all processes.
  // The arguments of its start. Only the monitor's thread uses them before the start.
  v1::Job job;
  std::vector<v1::Device> devices;
  absl::Time launch_until = absl::InfiniteFuture();

  // The secret that the worker must show (worker_secret.h); empty before its launch, or if unknown.
  std::string secret;
  Phase phase = Phase::kLaunching;
  // The number of searches in kResolving.
  int looks = 0;
  // By worker; null for an ended process. Set before kRunning; afterwards only the monitor's thread uses it.
  std::vector<std::unique_ptr<WorkerProcess>> processes;
  std::shared_ptr<WorkerSession> session;
  bool cancelling = false;
  bool pausing = false;
  // The start of its silence if it was connected before. For a started or adopted worker, the time by which
  // it should be connected. A worker reconnects by itself if it can.
  absl::Time silent_since = absl::InfiniteFuture();
  // The end of its time after it was told to end. It gets SIGTERM at the first time, and SIGKILL at the
  // second.
  absl::Time terminate_at = absl::InfiniteFuture();
  absl::Time kill_at = absl::InfiniteFuture();
  // The worker's protocol, if this daemon does not know it and told the worker to exit.
  std::optional<int32_t> foreign_protocol;
  // True if the supervisor killed it.
  bool killed = false;
  // The time of the monitor's next action: launch, resolve or settle.
  absl::Time attend_at = absl::InfiniteFuture();
  // Its folder is removed after its end.
  bool remove_folder = false;

  // True if one of its processes crashed. Only the monitor's thread uses it.
  bool crashed = false;
  // The arguments of WorkerLost.
  v1::StateReason lost_reason = v1::STATE_REASON_WORKER_LOST;
  std::string lost_message;
  // True if the message only says that a worker noticed another's loss.
  bool lost_by_hearsay = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_
