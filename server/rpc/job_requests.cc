#include "server/rpc/job_requests.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "proto/fields/unknown_field.h"
#include "server/admission/remote_data.h"
#include "server/jobs/uploaded_weights.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {
namespace {

constexpr size_t kMaxRequestIdCharacters = 128;
constexpr char kDatasetField[] = "spec.dataset";

// PERMISSION_DENIED if the weights are a file of another user's upload, and the caller is no administrator.
absl::Status CheckWeightsOwner(const Caller& caller, const v1::InitialWeights& weights, Uploads* uploads) {
  const std::optional<UploadedFile> uploaded = UploadedWeights(weights);
  if (!uploaded.has_value()) return absl::OkStatus();
  absl::Status owned = CheckUploadOwner(caller, uploaded->upload, uploads);
  // Admission reports a missing upload, with its field.
  return absl::IsNotFound(owned) ? absl::OkStatus() : owned;
}

}  // namespace

absl::Status CheckRequestId(const std::string& id) {
  if (id.size() > kMaxRequestIdCharacters) {
    return FieldError("request_id", absl::StrCat("has ", id.size(), " characters; at most ",
                                                 kMaxRequestIdCharacters, " are allowed"));
  }
  if (!std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isprint(c); })) {
    return FieldError("request_id", "has characters that are not printable ASCII");
  }
  return absl::OkStatus();
}

absl::Status CheckKnownFields(const google::protobuf::Message& request) {
  const std::optional<std::string> unknown = FindUnknownField(request);
  if (!unknown.has_value()) return absl::OkStatus();
  return WithReason(FieldError(*unknown,
                               "is the number of a field that this version of the daemon does not know; "
                               "leave it out, or update the daemon"),
                    "UNKNOWN_FIELD");
}

absl::StatusOr<JobMachine::NewJob> JobRequests::Admit(const Caller& caller, const v1::JobSpec& spec,
                                                      const DataNames* names) const {
  TANDEM_RETURN_IF_ERROR(CheckWeightsOwner(caller, spec.initial_weights(), uploads_));
  TANDEM_ASSIGN_OR_RETURN(AdmittedJob admitted, names == nullptr ? admission_->Admit(spec)
                                                                 : admission_->AdmitMatched(spec, *names));
  TANDEM_RETURN_IF_ERROR(CheckPriority(caller, admitted.spec.priority()));
  TANDEM_RETURN_IF_ERROR(jobs_->CheckQueueLength(1));
  TANDEM_RETURN_IF_ERROR(quotas_->CheckDiskUse(caller.user));
  TANDEM_RETURN_IF_ERROR(scheduler_->CheckCanRun(caller.user, admitted.spec, admitted.planned_memory_bytes));
  JobMachine::NewJob job;
  job.spec = std::move(admitted.spec);
  job.planned_memory_bytes = admitted.planned_memory_bytes;
  job.planned_operations = admitted.planned_operations;
  job.user = caller.user;
  job.max_queued_jobs = quotas_->MaxQueuedJobs(caller.user);
  return job;
}

absl::Status CheckSpecSize(const google::protobuf::Message& spec, absl::string_view field) {
  const size_t bytes = spec.ByteSizeLong();
  if (bytes <= kMaxSpecBytes) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(absl::StrCat(field, ": has ", bytes, " bytes; at most ",
                                                              kMaxSpecBytes, " are allowed (1 MiB)")),
                    "SPEC_TOO_LARGE");
}

void JobRequests::AdmitWithData(const Caller& caller, const v1::JobSpec& spec,
                                absl::AnyInvocable<void(absl::StatusOr<AdmittedRequest>)> then,
                                std::optional<DataNames> names) const {
  if (absl::Status status = lifecycle_->CheckAcceptsJobs(); !status.ok()) return then(std::move(status));
  BringData(
      caller, spec,
      [this, caller, names = std::move(names), then = std::move(then)](absl::StatusOr<HeldJob> held) mutable {
        if (!held.ok()) return then(held.status());
        absl::StatusOr<JobMachine::NewJob> job =
            Admit(caller, held->spec, names.has_value() ? &*names : nullptr);
        if (!job.ok()) return then(job.status());
        then(AdmittedRequest{.job = *std::move(job), .hold = std::move(held->hold)});
      });
}

void JobRequests::BringData(const Caller& caller, const v1::JobSpec& spec,
                            absl::AnyInvocable<void(absl::StatusOr<HeldJob>)> then) const {
  if (NamesUrls(spec.dataset()) || IsUrl(spec.initial_weights().file())) {
    if (absl::Status status = CheckWithoutData(caller, spec); !status.ok()) return then(std::move(status));
  }
  // Keeps the job's data set until the job exists.
  DatasetRegistry::Hold hold = registry_->HoldFor(spec.dataset().name());
  local_data_->EnsureJob(
      caller.user, spec,
      [hold = std::move(hold), then = std::move(then)](absl::StatusOr<v1::JobSpec> local) mutable {
        if (!local.ok()) return then(local.status());
        then(HeldJob{.spec = *std::move(local), .hold = std::move(hold)});
      });
}

v1::Job MakeUnsubmitted(JobMachine::NewJob job) {
  v1::Job made;
  *made.mutable_spec() = std::move(job.spec);
  made.set_planned_memory_bytes(job.planned_memory_bytes);
  made.set_planned_operations(job.planned_operations);
  made.set_priority(made.spec().priority());
  made.set_user(job.user);
  return made;
}

absl::Status JobRequests::CheckWithoutData(const Caller& caller, const v1::JobSpec& spec) const {
  TANDEM_RETURN_IF_ERROR(CheckWeightsOwner(caller, spec.initial_weights(), uploads_));
  // The cache may have older content of the URLs, which says nothing about the job.
  v1::JobSpec without = spec;
  without.clear_dataset();
  // With names of data, admission does not read the weights.
  const absl::Status status = IsUrl(spec.initial_weights().file())
                                  ? admission_->AdmitMatched(without, DataNames()).status()
                                  : admission_->Admit(without).status();
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    if (!absl::StartsWith(violation.field, kDatasetField))
      violations.Add(violation.field, violation.description);
  }
  return WithReason(violations.ToStatus(), GetReason(status));
}

}  // namespace tandem::rpc
