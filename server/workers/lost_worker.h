#ifndef TANDEM_SERVER_WORKERS_LOST_WORKER_H_
#define TANDEM_SERVER_WORKERS_LOST_WORKER_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/workers/supervised_worker.h"
#include "server/workers/worker_process.h"

// What is said of a worker that did not say itself how its job ended: SupervisedWorker's lost_reason,
// lost_message and crashed. Its files may be read. On the supervisor's own thread.

namespace tandem {

// What is said until more is known of one that an earlier daemon started.
inline constexpr char kEndedUnwatched[] = "The worker ended while no daemon was running.";

// The process of this index is gone. `killed`: by the supervisor.
void NoteEnd(SupervisedWorker& worker, int index, const WorkerProcess::End& end, bool killed);

// It has not been heard of for so long, and is killed.
void NoteSilence(SupervisedWorker& worker, absl::Duration limit);

// What is said of one whose protocol this daemon does not speak.
std::string DescribeForeignProtocol(int32_t protocol);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LOST_WORKER_H_
