#ifndef TANDEM_SERVER_WORKERS_LOST_WORKER_H_
#define TANDEM_SERVER_WORKERS_LOST_WORKER_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/workers/supervised_worker.h"
#include "server/workers/worker_process.h"

// Describes a worker that did not report its job's end: sets SupervisedWorker's lost_reason, lost_message and
// crashed. May read its files. Only on the supervisor's own thread.

namespace tandem {

// The message until more is known about a worker of an earlier daemon.
inline constexpr char kEndedUnwatched[] = "The worker ended while no daemon was running.";

// The process with this index has ended. `killed`: the supervisor killed it.
void NoteEnd(SupervisedWorker& worker, int index, const WorkerProcess::End& end, bool killed);

// The worker was silent for this long and is being killed.
void NoteSilence(SupervisedWorker& worker, absl::Duration limit);

// Describes a worker whose protocol this daemon does not know.
std::string DescribeForeignProtocol(int32_t protocol);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LOST_WORKER_H_
