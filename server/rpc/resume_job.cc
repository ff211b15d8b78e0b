#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/data_digest.h"
#include "engine/data/source_paths.h"
#include "engine/training/checkpoint_fit.h"
#include "server/jobs/uploaded_weights.h"
#include "server/rpc/handlers.h"
#include "server/rpc/local_data.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for.h"
#include "server/rpc/quotas.h"
#include "server/store/records.h"
#include "server/workers/kept_weights.h"

namespace tandem::rpc {

namespace {

// Finds early if the job has no checkpoint, and so must start from initial weights that no longer exist.
absl::Status CheckInitialWeights(const v1::Job& job, JobMachine* jobs) {
  const v1::InitialWeights& weights = job.spec().initial_weights();
  const bool is_uploaded = UploadedWeights(weights).has_value();
  if (!weights.has_artifact() && !is_uploaded) return absl::OkStatus();
  // Search like the job's worker, whatever the database has.
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints,
                          ListCheckpointFiles(Env::Real(), job.folder()));
  if (!checkpoints.empty() || FindKeptWeights(job.folder()).has_value()) return absl::OkStatus();
  if (is_uploaded) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "cannot resume ", job.name(),
                          ": it has no checkpoint, and the uploaded file from which it starts was deleted; "
                          "submit a new job with the file")),
                      "INITIAL_WEIGHTS_DELETED");
  }
  const absl::StatusOr<v1::Job> source = jobs->Get(JobId(weights.artifact().job()));
  if (!absl::IsNotFound(source.status())) return source.status();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "cannot resume ", job.name(), ": it has no checkpoint, and ", weights.artifact().job(),
          ", whose model it starts from, was deleted; submit a new job with other initial_weights")),
      "INITIAL_WEIGHTS_DELETED");
}

// Returns a job with the data that its next attempt reads. A checkpoint replaces the initial weights.
absl::StatusOr<v1::JobSpec> DataToBring(const v1::Job& job) {
  v1::JobSpec spec;
  *spec.mutable_dataset() = job.spec().dataset();
  if (!IsUrl(job.spec().initial_weights().file())) return spec;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints,
                          ListCheckpointFiles(Env::Real(), job.folder()));
  if (checkpoints.empty()) spec.mutable_initial_weights()->set_file(job.spec().initial_weights().file());
  return spec;
}

// Checks that the job's data are unchanged since its newest checkpoint, by the checkpoint's digests.
// `dataset` is the job's, with its data here. Reads all data, except shards, of which the next attempt also
// compares the labels. FAILED_PRECONDITION with the reason DATA_CHANGED.
absl::Status CheckDataUnchanged(const v1::Job& job, const v1::DatasetSpec& dataset,
                                const DatasetCatalog* datasets) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                          ListCheckpointFiles(Env::Real(), job.folder()));
  if (files.empty()) return absl::OkStatus();
  const absl::StatusOr<SafetensorsHeader> header =
      ReadSafetensorsHeader(absl::StrCat(job.folder(), "/", files[0]));
  // If the checkpoint is damaged, the job's worker uses an older one and reports changed data.
  const absl::StatusOr<TrainingState> state = header.ok() ? StateOfCheckpoint(*header) : header.status();
  if (!state.ok() || state->data.empty()) return absl::OkStatus();
  absl::StatusOr<v1::DatasetSpec> resolved = datasets->Resolve(dataset);
  const absl::StatusOr<DataDigest> digest = resolved.ok() ? DigestData(*resolved) : resolved.status();
  // The next attempt reports unreadable data.
  if (!digest.ok()) return absl::OkStatus();
  const std::vector<std::string> changed = ChangedFields(state->data, *digest);
  if (changed.empty()) return absl::OkStatus();
  std::map<std::string, std::string> paths;
  for (const SourcePath& path : PathsOf(&*resolved)) paths[path.field] = absl::StrCat(" (", *path.path, ")");
  std::vector<std::string> places;
  for (const std::string& field : changed) {
    places.push_back(field == kDataSettings ? std::string("the settings of the data set")
                                            : absl::StrCat("the content of dataset.", field, paths[field]));
  }
  return WithReason(
      absl::FailedPreconditionError(
          absl::StrCat("cannot resume ", job.name(), ": ", absl::StrJoin(places, " and "),
                       " changed since the checkpoint of step ", state->step,
                       "; restore the old data, or resume with --accept-changed-data (accept_changed_data)")),
      "DATA_CHANGED");
}

void Resume(const Caller& caller, const std::string& name, const std::string& id, bool accept_changed_data,
            Reply<v1::Job> reply, JobMachine* jobs, const DatasetCatalog* datasets,
            const LocalData* local_data, const Quotas* quotas, FairPool* user_pool) {
  if (absl::Status status = CheckOwner(caller, id, name, jobs); !status.ok()) {
    return reply(std::move(status));
  }
  const absl::StatusOr<v1::Job> job = jobs->Get(id);
  if (!job.ok()) return reply(ExplainJobError(job.status(), name));
  // An administrator's call for another user counts against no quota.
  const int most = caller.is_admin() ? 0 : quotas->MaxQueuedJobs(caller.user);
  // The job fills its owner's disk quota, whoever resumes it.
  if (absl::Status status = quotas->CheckDiskUse(job->user()); !status.ok()) return reply(std::move(status));
  const bool begins = job->state() == v1::JOB_STATE_PAUSED || job->state() == v1::JOB_STATE_FAILED;
  const absl::StatusOr<v1::JobSpec> data = begins ? DataToBring(*job) : v1::JobSpec();
  if (!data.ok()) return reply(data.status());
  // The request holds only the job's name.
  if (begins && !KeepMore(user_pool, caller, local_data->BytesOfJob(*data), reply)) return;
  auto resume = [jobs, datasets, name, id, most, job = *job, checks_data = begins && !accept_changed_data,
                 reply = std::move(reply)](absl::StatusOr<v1::JobSpec> local) mutable {
    if (!local.ok()) return reply(local.status());
    if (absl::Status same =
            checks_data ? CheckDataUnchanged(job, local->dataset(), datasets) : absl::OkStatus();
        !same.ok()) {
      return reply(std::move(same));
    }
    jobs->Resume(id, most, [name, reply = std::move(reply)](absl::StatusOr<v1::Job> resumed) mutable {
      if (!resumed.ok()) resumed = ExplainJobError(resumed.status(), name);
      reply(std::move(resumed));
    });
  };
  if (begins) {
    if (absl::Status status = CheckInitialWeights(*job, jobs); !status.ok()) {
      resume(std::move(status));
      return;
    }
    // The job enters the queue again.
    if (absl::Status status = jobs->CheckQueueLength(1); !status.ok()) {
      resume(std::move(status));
      return;
    }
    // The cache may have evicted the data since.
    local_data->EnsureJob(caller.user, *data, std::move(resume));
  } else {
    resume(*data);
  }
}

}  // namespace

void ResumeJob(const Caller& caller, const v1::ResumeJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, const Lifecycle* lifecycle, const DatasetCatalog* datasets,
               const LocalData* local_data, const Quotas* quotas, FairPool* user_pool) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  // If jobs are being cancelled for a shutdown, the job would be cancelled at once.
  if (const absl::Status accepts = lifecycle->CheckAcceptsJobs(); !accepts.ok()) {
    return reply(accepts);
  }
  PostFor(user_pool, caller, request, std::move(reply),
          [jobs, datasets, local_data, quotas, user_pool, caller, &request, id = *id](Reply<v1::Job> reply) {
            Resume(caller, request.name(), id, request.accept_changed_data(), std::move(reply), jobs,
                   datasets, local_data, quotas, user_pool);
          });
}

}  // namespace tandem::rpc
