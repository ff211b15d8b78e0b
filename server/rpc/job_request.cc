#include "server/rpc/job_request.h"

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
#include "server/rpc/local_data.h"
#include "server/rpc/permissions.h"
#include "server/rpc/quota_checks.h"

namespace tandem::rpc {
namespace {

constexpr size_t kMaxRequestIdCharacters = 128;
constexpr char kDatasetField[] = "spec.dataset";

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

absl::StatusOr<JobMachine::NewJob> AdmitJob(const RpcContext& context, const Caller& caller,
                                            const v1::JobSpec& spec, const DataNames* names) {
  TANDEM_ASSIGN_OR_RETURN(AdmittedJob admitted, names == nullptr
                                                    ? context.admission->Admit(spec)
                                                    : context.admission->AdmitMatched(spec, *names));
  TANDEM_RETURN_IF_ERROR(CheckPriority(caller, admitted.spec.priority()));
  TANDEM_RETURN_IF_ERROR(context.jobs->CheckQueueLength(1));
  TANDEM_RETURN_IF_ERROR(CheckDiskUse(context, caller.user));
  TANDEM_RETURN_IF_ERROR(
      context.scheduler->CheckCanRun(caller.user, admitted.spec, admitted.planned_memory_bytes));
  JobMachine::NewJob job;
  job.spec = std::move(admitted.spec);
  job.planned_memory_bytes = admitted.planned_memory_bytes;
  job.planned_operations = admitted.planned_operations;
  job.user = caller.user;
  job.max_queued_jobs = context.quota(caller.user).max_queued_jobs;
  return job;
}

absl::Status CheckSpecSize(const google::protobuf::Message& spec, absl::string_view field) {
  const size_t bytes = spec.ByteSizeLong();
  if (bytes <= kMaxSpecBytes) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(absl::StrCat(field, ": has ", bytes, " bytes; at most ",
                                                              kMaxSpecBytes, " are allowed (1 MiB)")),
                    "SPEC_TOO_LARGE");
}

void AdmitWithData(const RpcContext& context, const Caller& caller, const v1::JobSpec& spec,
                   absl::AnyInvocable<void(absl::StatusOr<AdmittedRequest>)> then,
                   std::optional<DataNames> names) {
  if (absl::Status status = context.lifecycle->CheckAcceptsJobs(); !status.ok())
    return then(std::move(status));
  if (NamesUrls(spec.dataset())) {
    if (absl::Status status = CheckWithoutData(context, spec); !status.ok()) return then(std::move(status));
  }
  // Keeps the job's data set until the job exists.
  DatasetRegistry::Hold hold = context.registry->HoldFor(spec.dataset().name());
  WithLocalData(context, caller.user, spec.dataset(), kDatasetField, kFetchWait,
                [&context, caller, spec = v1::JobSpec(spec), hold = std::move(hold), names = std::move(names),
                 then = std::move(then)](absl::StatusOr<v1::DatasetSpec> dataset) mutable {
                  if (!dataset.ok()) return then(dataset.status());
                  if (spec.has_dataset()) *spec.mutable_dataset() = *std::move(dataset);
                  absl::StatusOr<JobMachine::NewJob> job =
                      AdmitJob(context, caller, spec, names.has_value() ? &*names : nullptr);
                  if (!job.ok()) return then(job.status());
                  then(AdmittedRequest{.job = *std::move(job), .hold = std::move(hold)});
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

absl::Status CheckWithoutData(const RpcContext& context, const v1::JobSpec& spec) {
  const absl::Status status = context.admission->Admit(spec).status();
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    if (!absl::StartsWith(violation.field, "spec.dataset"))
      violations.Add(violation.field, violation.description);
  }
  return WithReason(violations.ToStatus(), GetReason(status));
}

}  // namespace tandem::rpc
