#ifndef TANDEM_SERVER_JOBS_REFUSAL_H_
#define TANDEM_SERVER_JOBS_REFUSAL_H_

#include "absl/status/status.h"
#include "server/jobs/transitions.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns FAILED_PRECONDITION: the reason why the table refuses the trigger for the job, and the remedy. The
// reason is JOB_HAS_ENDED, JOB_HAS_NOT_ENDED (for deletion) or JOB_IS_STOPPING; none if no client asked.
absl::Status RefuseTrigger(const v1::Job& job, Trigger trigger);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_REFUSAL_H_
