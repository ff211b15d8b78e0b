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

// What is known of a worker, or of those that train a job together, from its start to the return of its
// lease. Members without another note are guarded by the supervisor's lock.
struct SupervisedWorker {
  enum class Phase {
    kLaunching,  // the monitor is to start its process
    kResolving,  // it runs, and the monitor finds out as which processes
    kRunning,    // it has a process
    kEnded,      // it has none, or never had
  };

  // These never change.
  std::string job_id;
  int32_t attempt = 0;
  JobFolder folder{""};
  int workers = 1;   // Processes that train together.
  int replicas = 1;  // Of all of them.
  // What to start it with, until it has been: the monitor's thread alone touches these then.
  v1::Job job;
  std::vector<v1::Device> devices;
  absl::Time launch_until = absl::InfiniteFuture();

  // What it must say to be believed (worker_secret.h); empty before its launch, and where it is not known.
  std::string secret;
  Phase phase = Phase::kLaunching;
  // How often it was looked for, in kResolving.
  int looks = 0;
  // By worker; null where one is gone. Set before kRunning, and then of the monitor's thread alone.
  std::vector<std::unique_ptr<WorkerProcess>> processes;
  std::shared_ptr<WorkerSession> session;
  bool cancelling = false;
  bool pausing = false;
  // Since when it is not heard of, where it was before; or should be, where it was started or adopted. It
  // comes back by itself where it can.
  absl::Time silent_since = absl::InfiniteFuture();
  // It was told to go, and has so long; then it gets SIGTERM, and then SIGKILL.
  absl::Time terminate_at = absl::InfiniteFuture();
  absl::Time kill_at = absl::InfiniteFuture();
  // The protocol that it speaks, where this daemon does not, and told it to go.
  std::optional<int32_t> foreign_protocol;
  // The supervisor killed it.
  bool killed = false;
  // When the monitor has to do something: launch, resolve, or settle once more.
  absl::Time attend_at = absl::InfiniteFuture();
  // Its folder goes when it is gone.
  bool remove_folder = false;

  // One of its processes ended in a way that says that it crashed; of the monitor's thread alone.
  bool crashed = false;
  // What WorkerLost is to be told.
  v1::StateReason lost_reason = v1::STATE_REASON_WORKER_LOST;
  std::string lost_message;
  // Whether it only says that a worker has noticed that another is lost.
  bool lost_by_hearsay = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_
