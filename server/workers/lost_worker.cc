#include "server/workers/lost_worker.h"

#include <signal.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/workers/exit_codes.h"
#include "server/workers/worker_log.h"
#include "server/workers/worker_protocol.h"

namespace tandem {
namespace {

// Returns "The worker", or the worker's number and ranks if there are several.
std::string NameOf(const SupervisedWorker& worker, int index) {
  if (worker.workers == 1) return "The worker";
  const int ranks = worker.replicas / worker.workers, first = index * ranks;
  return absl::StrCat("Worker ", index, " of ", worker.workers,
                      ranks == 1 ? absl::StrCat(" (rank ", first, ")")
                                 : absl::StrCat(" (ranks ", first, " to ", first + ranks - 1, ")"));
}

// Returns true if a device may be at fault: the process got a signal that shows a broken processor or
// program, or CUDA failed.
bool IsCrash(const WorkerProcess::End& end) {
  return end.signal == SIGSEGV || end.signal == SIGBUS || end.signal == SIGILL || end.signal == SIGFPE ||
         end.signal == SIGABRT || end.exit_code == kWorkerDeviceFailed;
}

}  // namespace

std::string DescribeForeignProtocol(int32_t protocol) {
  return absl::StrCat("The worker was of another version of Tandem than the daemon: it speaks protocol ",
                      protocol, ", and the daemon ", kWorkerProtocol, ".");
}

void NoteEnd(SupervisedWorker& worker, int index, const WorkerProcess::End& end, bool killed) {
  if (!killed && IsCrash(end)) worker.crashed = true;
  // In a group, a worker that did its part is fine. The first worker that failed counts, unless it only
  // noticed another's failure.
  const bool done = end.known && end.exit_code == kWorkerDone;
  if (worker.workers > 1 && index != 0 && done) return;
  const bool hearsay = end.exit_code == kWorkerGroupFailed;
  const bool is_first = worker.lost_message.empty() ||
                        (worker.lost_message == kEndedUnwatched && (!killed || worker.workers == 1));
  if (!is_first && (killed || hearsay || !worker.lost_by_hearsay)) return;
  worker.lost_by_hearsay = hearsay;
  if (killed) {
    worker.lost_message = "The worker did not stop in time after it was told to, and was killed.";
    return;
  }
  worker.lost_message = absl::StrCat(NameOf(worker, index), " ", DescribeEnd(end),
                                     done ? " without saying how training ended." : ".");
  // Usually a full disk, which is not the worker's fault.
  if (end.exit_code == kWorkerSpoolFailed) worker.lost_reason = v1::STATE_REASON_IO_ERROR;
  if (end.exit_code == kWorkerBadLaunch) worker.lost_reason = v1::STATE_REASON_WORKER_START_FAILED;
  if (end.exit_code > 0 || (end.signal != 0 && end.signal != SIGKILL && end.signal != SIGTERM)) {
    const std::string line = LastLogLine(worker.folder.LogPath(index));
    if (!line.empty()) absl::StrAppend(&worker.lost_message, " The last line of its log: ", line);
    const std::string report = worker.folder.CrashReportPath(worker.attempt, index);
    if (end.signal != 0 && access(report.c_str(), F_OK) == 0) {
      absl::StrAppend(&worker.lost_message, line.empty() || absl::EndsWith(line, ".") ? "" : ".",
                      " Its stack is in ", report, ".");
    }
  }
}

void NoteSilence(SupervisedWorker& worker, absl::Duration limit) {
  if (!worker.lost_message.empty() && worker.lost_message != kEndedUnwatched) return;
  worker.lost_message = absl::StrCat("The worker was alive, and silent for more than ",
                                     absl::FormatDuration(limit), ", as if stopped; it was killed.");
}

}  // namespace tandem
