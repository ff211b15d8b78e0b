#include "server/rpc/reserved_weights.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/workers/kept_weights.h"
#include "third_party/spdlog/log.h"

namespace tandem::rpc {
namespace {

absl::Status Keep(Uploads* uploads, const UploadedFile& uploaded, const std::string& job_folder) {
  const absl::StatusOr<std::string> file = uploads->FindFile(uploaded.upload, uploaded.path);
  absl::Status kept = file.ok() ? KeepUploadedWeights(*file, job_folder, ::link) : file.status();
  // The upload may have been removed since admission.
  if (!absl::IsInvalidArgument(kept)) return kept;
  return WithReason(FieldError("spec.initial_weights.file", kept.message()), "INVALID_SPEC");
}

}  // namespace

void ReserveWithWeights(JobMachine* jobs, Uploads* uploads, FairPool* user_pool,
                        const JobMachine::NewJob& reserving, UploadedFile uploaded,
                        absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) {
  jobs->Reserve(reserving, [jobs, uploads, user_pool, user = reserving.user, uploaded = std::move(uploaded),
                            done = std::move(done)](absl::StatusOr<std::string> id) mutable {
    if (!id.ok()) return done(id.status());
    user_pool->Post(user, [jobs, uploads, uploaded = std::move(uploaded), id = *std::move(id),
                           done = std::move(done)]() mutable {
      absl::Status kept = Keep(uploads, uploaded, jobs->FolderOf(id));
      if (kept.ok()) return done(std::move(id));
      ReleaseWithWeights(jobs, id);
      done(std::move(kept));
    });
  });
}

void ReleaseWithWeights(JobMachine* jobs, const std::string& id) {
  std::error_code error;
  std::filesystem::remove(KeptWeightsPath(jobs->FolderOf(id)), error);
  if (!error) return jobs->Release(id);
  spdlog::warn("cannot remove {}, a file without a job: {}; the next start of the daemon removes it",
               KeptWeightsPath(jobs->FolderOf(id)), error.message());
}

}  // namespace tandem::rpc
