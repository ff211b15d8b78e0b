#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/admission/remote_data.h"
#include "server/rpc/handlers.h"
#include "server/rpc/local_data.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {
namespace {

// Far above any network that is written by hand, far below what would burden the store.
constexpr size_t kMaxSpecBytes = 1 << 20;
constexpr size_t kMaxRequestIdCharacters = 128;
constexpr char kDatasetField[] = "spec.dataset";

absl::Status CheckRequest(const v1::CreateJobRequest& request) {
  if (const size_t bytes = request.spec().ByteSizeLong(); bytes > kMaxSpecBytes) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat("spec: has ", bytes, " bytes; at most ",
                                                                kMaxSpecBytes, " are accepted (1 MiB)")),
                      "SPEC_TOO_LARGE");
  }
  const std::string& id = request.request_id();
  if (id.size() > kMaxRequestIdCharacters) {
    return FieldError("request_id", absl::StrCat("has ", id.size(), " characters; at most ",
                                                 kMaxRequestIdCharacters, " are allowed"));
  }
  if (!std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isprint(c); })) {
    return FieldError("request_id", "holds characters that are not printable ASCII");
  }
  if (!request.has_spec()) return FieldError("spec", "is required: what the job is to do");
  return absl::OkStatus();
}

// With its data at hand.
void Admit(const RpcContext& context, const Caller& caller, const v1::CreateJobRequest& request,
           const v1::JobSpec& spec, DatasetRegistry::Hold hold, Reply<v1::Job> reply) {
  absl::StatusOr<AdmittedJob> admitted = context.admission->Admit(spec);
  if (!admitted.ok()) {
    reply(admitted.status());
    return;
  }
  absl::Status allowed = CheckPriority(caller, admitted->spec.priority());
  if (allowed.ok()) {
    allowed = context.scheduler->CheckCanRun(caller.user, admitted->spec, admitted->planned_memory_bytes);
  }
  if (!allowed.ok()) {
    reply(std::move(allowed));
    return;
  }
  if (request.validate_only()) {
    v1::Job job;
    *job.mutable_spec() = std::move(admitted->spec);
    job.set_planned_memory_bytes(admitted->planned_memory_bytes);
    job.set_planned_operations(admitted->planned_operations);
    job.set_priority(job.spec().priority());
    job.set_user(caller.user);
    reply(std::move(job));
    return;
  }
  // Admission may have taken a while.
  if (absl::Status status = context.lifecycle->CheckAcceptsJobs(); !status.ok()) {
    reply(std::move(status));
    return;
  }
  JobMachine::NewJob job;
  job.spec = std::move(admitted->spec);
  job.submitted_spec = request.spec();
  job.request_id = request.request_id();
  job.planned_memory_bytes = admitted->planned_memory_bytes;
  job.planned_operations = admitted->planned_operations;
  job.user = caller.user;
  job.max_queued_jobs = context.quota(caller.user).max_queued_jobs;
  context.jobs->Create(std::move(job), [hold = std::move(hold), reply = std::move(reply)](
                                           absl::StatusOr<v1::Job> made) mutable { reply(std::move(made)); });
}

// What is wrong with a job but for its data, which is not here yet: nobody should wait for data to hear of
// a misspelt layer.
absl::Status CheckWithoutData(const RpcContext& context, const v1::JobSpec& spec) {
  const absl::Status status = context.admission->Admit(spec).status();
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    if (!absl::StartsWith(violation.field, kDatasetField))
      violations.Add(violation.field, violation.description);
  }
  return WithReason(violations.ToStatus(), GetReason(status));
}

void Create(const RpcContext& context, const Caller& caller, const v1::CreateJobRequest& request,
            Reply<v1::Job> reply) {
  if (!request.request_id().empty() && !request.validate_only()) {
    // Before anything may refuse it: what the first request found may be gone since.
    absl::StatusOr<std::optional<v1::Job>> repeated =
        context.jobs->FindRepeated(request.request_id(), request.spec());
    if (!repeated.ok()) {
      reply(repeated.status());
      return;
    }
    if (repeated->has_value()) {
      reply(**std::move(repeated));
      return;
    }
  }
  if (absl::Status status = context.lifecycle->CheckAcceptsJobs(); !status.ok()) {
    reply(std::move(status));
    return;
  }
  if (NamesUrls(request.spec().dataset())) {
    if (absl::Status status = CheckWithoutData(context, request.spec()); !status.ok()) {
      reply(std::move(status));
      return;
    }
  }
  // What the job names is there until the job is.
  DatasetRegistry::Hold hold = context.registry->HoldFor(request.spec().dataset().name());
  WithLocalData(context, request.spec().dataset(), kDatasetField, kFetchWait,
                [&context, caller, &request, hold = std::move(hold),
                 reply = std::move(reply)](absl::StatusOr<v1::DatasetSpec> dataset) mutable {
                  if (!dataset.ok()) {
                    reply(dataset.status());
                    return;
                  }
                  v1::JobSpec spec = request.spec();
                  if (spec.has_dataset()) *spec.mutable_dataset() = *std::move(dataset);
                  Admit(context, caller, request, spec, std::move(hold), std::move(reply));
                });
}

}  // namespace

void CreateJob(const RpcContext& context, const Caller& caller, const v1::CreateJobRequest& request,
               Reply<v1::Job> reply) {
  if (absl::Status status = CheckRequest(request); !status.ok()) {
    reply(std::move(status));
    return;
  }
  // It reads the database, and admission reads data sets.
  context.pool->Post([&context, caller, &request, reply = std::move(reply)]() mutable {
    Create(context, caller, request, std::move(reply));
  });
}

}  // namespace tandem::rpc
