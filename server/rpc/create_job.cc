#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/admission/remote_data.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_request.h"
#include "server/rpc/local_data.h"

namespace tandem::rpc {
namespace {

constexpr char kDatasetField[] = "spec.dataset";

absl::Status CheckRequest(const v1::CreateJobRequest& request) {
  if (const size_t bytes = request.spec().ByteSizeLong(); bytes > kMaxSpecBytes) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat("spec: has ", bytes, " bytes; at most ",
                                                                kMaxSpecBytes, " are accepted (1 MiB)")),
                      "SPEC_TOO_LARGE");
  }
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) return status;
  if (!request.has_spec()) return FieldError("spec", "is required: what the job is to do");
  return absl::OkStatus();
}

// With its data at hand.
void Admit(const RpcContext& context, const Caller& caller, const v1::CreateJobRequest& request,
           const v1::JobSpec& spec, DatasetRegistry::Hold hold, Reply<v1::Job> reply) {
  absl::StatusOr<JobMachine::NewJob> job = AdmitJob(context, caller, spec);
  if (!job.ok()) {
    reply(job.status());
    return;
  }
  if (request.validate_only()) {
    v1::Job made;
    *made.mutable_spec() = std::move(job->spec);
    made.set_planned_memory_bytes(job->planned_memory_bytes);
    made.set_planned_operations(job->planned_operations);
    made.set_priority(made.spec().priority());
    made.set_user(caller.user);
    reply(std::move(made));
    return;
  }
  // Admission may have taken a while.
  if (absl::Status status = context.lifecycle->CheckAcceptsJobs(); !status.ok()) {
    reply(std::move(status));
    return;
  }
  job->submitted_spec = request.spec();
  job->request_id = request.request_id();
  context.jobs->Create(*std::move(job),
                       [hold = std::move(hold), reply = std::move(reply)](
                           absl::StatusOr<v1::Job> made) mutable { reply(std::move(made)); });
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
