#ifndef TANDEM_SERVER_JOBS_WORKER_EVENTS_H_
#define TANDEM_SERVER_JOBS_WORKER_EVENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/jobs/job_edit.h"
#include "server/store/transaction.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// The part of JobMachine::ApplyWorkerEvents in the transaction, with the same errors. `changes->job` is the
// job, with or without its spec. `now` is the time of events that have no time.
absl::Status ApplyEvents(Transaction* transaction, int32_t attempt,
                         const std::vector<internal::v1::WorkerEvent>& events,
                         const google::protobuf::Timestamp& now, JobChanges* changes);

// FAILED_PRECONDITION: the attempt is not the job's newest.
absl::Status CheckAttempt(const v1::Job& job, int32_t attempt);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_WORKER_EVENTS_H_
