#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/training/replica_spec.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/handlers.h"
#include "server/rpc/log_source.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"

namespace tandem::rpc {

Source<v1::ReadLogResponse> ReadLog(const Caller& caller, const v1::ReadLogRequest& request, JobMachine* jobs,
                                    EventHub* events, FileWatcher* files, FairPool* pool) {
  absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return id.status();
  if (request.offset() < 0) {
    return FieldError("offset", absl::StrCat("is ", request.offset(), "; it must be at least 0"));
  }
  auto open = [jobs, events, files, pool, user = caller.user, request,
               id = *std::move(id)]() -> Source<v1::ReadLogResponse> {
    const absl::StatusOr<v1::Job> job = jobs->Get(id);
    if (!job.ok()) return ExplainJobError(job.status(), request.name());
    const int ranks = static_cast<int>(LoadsOf(job->spec().replicas()).size());
    const int workers = std::max(1, job->spec().replicas().workers());
    if (request.rank() < 0 || request.rank() >= ranks) {
      return FieldError("rank",
                        absl::StrCat("is ", request.rank(), "; the job has the ranks 0 to ", ranks - 1));
    }
    // A running job may have no folder yet, and creates it.
    std::error_code error;
    if (IsTerminal(job->state()) && job->attempt() > 0 && !std::filesystem::exists(job->folder(), error) &&
        !error) {
      return WithReason(
          absl::NotFoundError(absl::StrCat("cannot read the log of ", job->name(), ": its folder ",
                                           job->folder(), " was removed on the daemon's machine")),
          "LOG_NOT_FOUND");
    }
    LogRequest log;
    log.path = JobFolder(job->folder()).LogPath(request.rank() / (ranks / workers));
    log.offset = request.offset();
    if (request.follow()) log.until_end = events->Subscribe(id, job->last_sequence());
    return MakeLogSource(std::move(log), pool, user, files);
  };
  return std::make_unique<DeferredSource<v1::ReadLogResponse>>(
      pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()), std::move(open));
}

}  // namespace tandem::rpc
