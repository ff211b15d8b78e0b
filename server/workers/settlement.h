#ifndef TANDEM_SERVER_WORKERS_SETTLEMENT_H_
#define TANDEM_SERVER_WORKERS_SETTLEMENT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/jobs/job_machine.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Applies the events in an ended worker's spool to the job, then reports the worker as lost, with this reason
// and message, if its events do not tell how the job ended. May be repeated: applied events change nothing. A
// missing spool counts as empty. Returns OK if nothing more can be done, for example if the file is no spool.
// Returns an error if the caller should try again, or CANCELLED after `stopped` returned true. Blocks; must
// not be called on the store's writer thread.
absl::Status SettleWorker(JobMachine* jobs, const std::string& job_id, int32_t attempt,
                          const std::string& spool_path, v1::StateReason reason, const std::string& message,
                          const std::function<bool()>& stopped);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SETTLEMENT_H_
