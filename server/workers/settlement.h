#ifndef TANDEM_SERVER_WORKERS_SETTLEMENT_H_
#define TANDEM_SERVER_WORKERS_SETTLEMENT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/jobs/job_machine.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Gives the JobMachine what a worker that is gone has left in its spool, and tells it that the worker is
// lost, for this reason and with this message, where its events do not say how the job ended. Can be
// repeated: what was applied before changes nothing. No spool is an empty one. OK where nothing can be done
// any more, as with a spool that is no spool; an error where it should be tried once more, or CANCELLED once
// `stopped` returned true. Blocks; not to be called on the store's writer thread.
absl::Status SettleWorker(JobMachine* jobs, const std::string& job_id, int32_t attempt,
                          const std::string& spool_path, v1::StateReason reason, const std::string& message,
                          const std::function<bool()>& stopped);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SETTLEMENT_H_
