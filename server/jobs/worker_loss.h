#ifndef TANDEM_SERVER_JOBS_WORKER_LOSS_H_
#define TANDEM_SERVER_JOBS_WORKER_LOSS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/jobs/job_edit.h"
#include "server/store/transaction.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A worker that ended or could not be started.
struct WorkerLoss {
  v1::StateReason reason = v1::STATE_REASON_WORKER_LOST;
  std::string message;
  // The time of the loss.
  google::protobuf::Timestamp time;
  // The summary of the training so far; null if unknown.
  const v1::TrainingSummary* summary = nullptr;
};

// Returns the delay before the `restart`-th restart in a row, counted from 1: 1, 2, 4 ... seconds, at
// most kLongestRestartDelay.
absl::Duration RestartDelay(int restart);

// Returns true if the same job may succeed after a loss of its worker for this reason. A job that needs more
// memory than its cluster gives, or that a person cancelled in the cluster, does not.
bool IsLossReason(v1::StateReason reason);

// Returns true if a job that lost its worker for this reason restarts by itself. Its state must be STARTING
// or RUNNING, and its restarts must be below the limit. A worker that could not be started is retried only
// once. Without `is_counted`, the restart is not counted, and the limit does not apply.
bool MayRestart(const v1::Job& job, v1::StateReason reason, bool is_counted);

// Returns the job to the queue, to restart after a delay from `now`. The restart is not counted if the
// cluster ended the attempt at its time limit or by a preemption, and the attempt wrote a checkpoint. If the
// job may not restart, it becomes FAILED with the loss's reason. CANCELLING becomes CANCELLED, PAUSING
// becomes PAUSED, and PREEMPTING becomes QUEUED. FAILED_PRECONDITION if the job has no worker.
absl::Status LoseWorker(Transaction* transaction, const WorkerLoss& loss,
                        const google::protobuf::Timestamp& now, JobChanges* changes);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_WORKER_LOSS_H_
