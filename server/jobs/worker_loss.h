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

// A worker that is gone, or could not be started.
struct WorkerLoss {
  v1::StateReason reason = v1::STATE_REASON_WORKER_LOST;
  std::string message;
  // When it was lost.
  google::protobuf::Timestamp time;
  // What came of the training so far; null where that is not known.
  const v1::TrainingSummary* summary = nullptr;
};

// How long a job waits until its `restart`-th start in a row, from 1: 1, 2, 4 ... and at most 300 seconds.
absl::Duration RestartDelay(int restart);

// Whether a job that lost its worker for this reason goes on by itself: its worker trained or was about to,
// it was not told to stop, and it has not been started again as often as it may be. A worker that could not
// be started is tried once more alone.
bool MayRestart(const v1::Job& job, v1::StateReason reason);

// The job goes back to the queue, from which it is started when it has waited; or it becomes FAILED with the
// loss's reason, CANCELLED where it was CANCELLING, PAUSED where it was PAUSING, QUEUED where it was
// PREEMPTING. `now` is from when it waits. FAILED_PRECONDITION where it has no worker.
absl::Status LoseWorker(Transaction* transaction, const WorkerLoss& loss,
                        const google::protobuf::Timestamp& now, JobChanges* changes);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_WORKER_LOSS_H_
