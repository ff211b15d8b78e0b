#ifndef TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
#define TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_

#include <cstdint>

namespace tandem {

// What daemon and workers speak (proto/tandem/internal/v1/worker.proto), by versions, since a daemon takes
// over workers that an earlier one started:
//   1  as of workers that do not say
//   2  they say it; what the daemon lost since it had acknowledged it is sent again
inline constexpr int32_t kWorkerProtocol = 2;
// Workers of an older one are ended, and their jobs start again from their checkpoints. So are those of a
// newer one than kWorkerProtocol, which a daemon finds that was put back to an earlier version.
inline constexpr int32_t kOldestWorkerProtocol = 1;

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
