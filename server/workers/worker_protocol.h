#ifndef TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
#define TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_

#include <cstdint>

#include "absl/time/time.h"

namespace tandem {

// The version of the protocol between daemon and worker (proto/tandem/internal/v1/worker.proto). A daemon
// takes over workers that another program started. It ends workers that say another version, and their jobs
// start again from their checkpoints.
inline constexpr int32_t kWorkerProtocol = 2;

// A worker that has no daemon looks for one again after so long, at the latest.
inline constexpr absl::Duration kReconnectInterval = absl::Seconds(1);
// How many of these a worker may be silent at least: with fewer, one that is well and between two looks, or
// on a machine that is busy for a moment, passes for one that hangs.
inline constexpr int kLeastSilence = 5;

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
