#ifndef TANDEM_SERVER_STORE_APPEND_NEXT_H_
#define TANDEM_SERVER_STORE_APPEND_NEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/base/status_macros.h"
#include "server/store/transaction.h"

namespace tandem {

// For tests: adds an empty event to the log of the job with this id. Sets its sequence number.
inline absl::Status AppendNext(Transaction& transaction, const std::string& id, int64_t* sequence) {
  TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec(id));
  v1::JobEvent event;
  event.set_job(job.job.name());
  event.set_sequence(job.job.last_sequence() + 1);
  TANDEM_RETURN_IF_ERROR(transaction.AppendEvent(job, event));
  job.job.set_last_sequence(event.sequence());
  *sequence = event.sequence();
  return transaction.UpdateJob(&job);
}

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_APPEND_NEXT_H_
