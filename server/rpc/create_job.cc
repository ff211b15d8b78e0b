#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

// Far above any network that is written by hand, far below what would burden the store.
constexpr size_t kMaxSpecBytes = 1 << 20;
constexpr size_t kMaxRequestIdCharacters = 128;

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

void Create(const RpcContext& context, const v1::CreateJobRequest& request, Reply<v1::Job> reply) {
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
  // What the job names is there until the job is.
  DatasetRegistry::Hold hold = context.registry->HoldFor(request.spec().dataset().name());
  absl::StatusOr<AdmittedJob> admitted = context.admission->Admit(request.spec());
  if (!admitted.ok()) {
    reply(admitted.status());
    return;
  }
  if (request.validate_only()) {
    v1::Job job;
    *job.mutable_spec() = std::move(admitted->spec);
    job.set_planned_memory_bytes(admitted->planned_memory_bytes);
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
  context.jobs->Create(std::move(job), [hold = std::move(hold), reply = std::move(reply)](
                                           absl::StatusOr<v1::Job> made) mutable { reply(std::move(made)); });
}

}  // namespace

void CreateJob(const RpcContext& context, const v1::CreateJobRequest& request, Reply<v1::Job> reply) {
  if (absl::Status status = CheckRequest(request); !status.ok()) {
    reply(std::move(status));
    return;
  }
  // It reads the database, and admission reads data sets.
  context.pool->Post([&context, &request, reply = std::move(reply)]() mutable {
    Create(context, request, std::move(reply));
  });
}

}  // namespace tandem::rpc
