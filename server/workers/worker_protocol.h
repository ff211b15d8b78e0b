#ifndef TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
#define TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_

#include <cstdint>

#include "absl/time/time.h"

namespace tandem {

// What daemon and workers speak (proto/tandem/internal/v1/worker.proto), by versions, since a daemon takes
// over workers that an earlier one started:
//   1  as of workers that do not say
//   2  they say it; what the daemon lost since it had acknowledged it is sent again
inline constexpr int32_t kWorkerProtocol = 2;
// Workers of an older one are ended, and their jobs start again from their checkpoints. So are those of a
// newer one than kWorkerProtocol, which a daemon finds that was put back to an earlier version.
inline constexpr int32_t kOldestWorkerProtocol = 1;

// A worker that has no daemon looks for one again after so long, at the latest.
inline constexpr absl::Duration kReconnectInterval = absl::Seconds(1);
// How many of these a worker may be silent at least: with fewer, one that is well and between two looks, or
// on a machine that is busy for a moment, passes for one that hangs.
inline constexpr int kLeastSilence = 5;

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
