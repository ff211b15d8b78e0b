#ifndef TANDEM_SERVER_JOBS_REFUSAL_H_
#define TANDEM_SERVER_JOBS_REFUSAL_H_

#include "absl/status/status.h"
#include "server/jobs/transitions.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Why the table refuses the trigger for the job, and what can be done instead: FAILED_PRECONDITION with a
// reason: JOB_HAS_ENDED, JOB_HAS_NOT_ENDED (for its removal), JOB_IS_STOPPING, or none where no client asked.
absl::Status RefuseTrigger(const v1::Job& job, Trigger trigger);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_REFUSAL_H_
