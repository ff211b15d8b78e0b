#include "server/workers/settlement.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "server/store/pending_result.h"
#include "server/store/records.h"
#include "server/workers/spool.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

// The most events and bytes in memory and in a transaction, because a hijacked worker may have written the
// spool.
constexpr size_t kBatchEvents = 1000;
constexpr size_t kBatchBytes = 4 << 20;

// Returns true if a later try may succeed.
bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kInvalidArgument:
      return false;
    default:
      return true;
  }
}

// Applies the spool's events and returns the job's position.
absl::StatusOr<JobMachine::WorkerPosition> ApplySpool(JobMachine* jobs, const std::string& job_id,
                                                      int32_t attempt, const std::string& spool_path,
                                                      const std::function<bool()>& stopped) {
  absl::StatusOr<std::unique_ptr<SpoolReader>> reader = SpoolReader::Open(spool_path);
  if (absl::IsDataLoss(reader.status())) {
    spdlog::error("lost events of a worker job={} attempt={}: {}", job_id, attempt,
                  reader.status().ToString());
  } else if (!reader.ok() && !absl::IsNotFound(reader.status())) {
    return reader.status();
  }
  JobMachine::WorkerPosition position;
  bool at_end = false;
  while (!at_end) {
    if (stopped()) return absl::CancelledError("the daemon is shutting down");
    std::vector<WorkerEvent> events;
    size_t bytes = 0;
    while (!at_end && events.size() < kBatchEvents && bytes < kBatchBytes) {
      std::optional<WorkerEvent> event;
      if (reader.ok()) {
        TANDEM_ASSIGN_OR_RETURN(event, (*reader)->Next());
      }
      at_end = !event.has_value();
      if (at_end) break;
      bytes += event->SpaceUsedLong();
      events.push_back(*std::move(event));
    }
    const PendingResult<JobMachine::WorkerPosition> result;
    jobs->ApplyWorkerEvents(job_id, attempt, std::move(events), result.Callback());
    TANDEM_ASSIGN_OR_RETURN(position, result.Wait());
  }
  return position;
}

}  // namespace

absl::Status SettleWorker(JobMachine* jobs, const std::string& job_id, int32_t attempt,
                          const std::string& spool_path, v1::StateReason reason, const std::string& message,
                          const std::function<bool()>& stopped) {
  const absl::StatusOr<JobMachine::WorkerPosition> position =
      ApplySpool(jobs, job_id, attempt, spool_path, stopped);
  if (absl::IsNotFound(position.status())) return absl::OkStatus();
  if (IsTransient(position.status())) return position.status();
  if (!position.ok()) {
    spdlog::error("lost events of a worker job={} attempt={}: {}", job_id, attempt,
                  position.status().ToString());
  } else if (IsAtRest(position->state) || position->state == v1::JOB_STATE_QUEUED) {
    return absl::OkStatus();
  }
  const PendingResult<v1::Job> lost;
  jobs->WorkerLost(job_id, attempt, reason, message, lost.Callback());
  const absl::Status status = lost.Wait().status();
  if (IsTransient(status)) return status;
  if (!status.ok() && !absl::IsNotFound(status)) {
    spdlog::warn("cannot record the end of a worker job={} attempt={}: {}", job_id, attempt,
                 status.ToString());
  }
  return absl::OkStatus();
}

}  // namespace tandem
