#include "server/workers/harvest.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "server/workers/pending_result.h"
#include "server/workers/spool.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

constexpr size_t kBatch = 1000;

}  // namespace

absl::StatusOr<JobMachine::WorkerPosition> HarvestSpool(JobMachine* jobs, const std::string& job_id,
                                                        int32_t attempt, const std::string& spool_path,
                                                        const std::function<bool()>& stopped) {
  absl::StatusOr<std::unique_ptr<SpoolReader>> reader = SpoolReader::Open(spool_path);
  if (!reader.ok() && !absl::IsNotFound(reader.status())) return reader.status();
  JobMachine::WorkerPosition position;
  bool at_end = false;
  while (!at_end) {
    if (stopped()) return absl::CancelledError("the daemon is going");
    std::vector<WorkerEvent> events;
    while (!at_end && events.size() < kBatch) {
      std::optional<WorkerEvent> event;
      if (reader.ok()) {
        TANDEM_ASSIGN_OR_RETURN(event, (*reader)->Next());
      }
      at_end = !event.has_value();
      if (!at_end) events.push_back(*std::move(event));
    }
    const PendingResult<JobMachine::WorkerPosition> result;
    jobs->ApplyWorkerEvents(job_id, attempt, std::move(events), result.Callback());
    TANDEM_ASSIGN_OR_RETURN(position, result.Wait());
  }
  return position;
}

}  // namespace tandem
