#ifndef TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
#define TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_

#include <cstdint>

#include "absl/time/time.h"

namespace tandem {

// The version of the protocol between daemon and worker (proto/tandem/internal/v1/worker.proto). A daemon may
// adopt workers of another program version. It ends workers with another protocol version, and their jobs
// restart from their checkpoints.
inline constexpr int32_t kWorkerProtocol = 3;

// The name in the certificate of the daemon's TCP listener for workers.
inline constexpr char kWorkerListenerName[] = "tandem-workers";

// The longest time between a worker's searches for a daemon.
inline constexpr absl::Duration kReconnectInterval = absl::Seconds(1);
// The least silence limit, in multiples of kReconnectInterval. With fewer, a healthy worker between two
// searches, or on a briefly busy machine, would look hung.
inline constexpr int kLeastSilence = 5;

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROTOCOL_H_
