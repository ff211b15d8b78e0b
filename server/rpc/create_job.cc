#include <optional>
#include <utility>

#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

absl::Status CheckRequest(const v1::CreateJobRequest& request) {
  if (absl::Status status = CheckSpecSize(request.spec()); !status.ok()) return status;
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) return status;
  if (!request.has_spec()) return FieldError("spec", "is required; describe the job");
  return absl::OkStatus();
}

}  // namespace

void CreateJob(const Caller& caller, const v1::CreateJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, const Lifecycle* lifecycle, const JobRequests* requests,
               FairPool* user_pool) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return reply(std::move(status));
  // Reads the database; admission reads data sets.
  PostFor(user_pool, caller, request, std::move(reply),
          [jobs, lifecycle, requests, user_pool, caller, &request](Reply<v1::Job> reply) {
            if (absl::Status status = CheckKnownFields(request); !status.ok()) {
              return reply(std::move(status));
            }
            if (!request.request_id().empty() && !request.validate_only()) {
              // Before any refusal: data that the first request used may be gone now.
              absl::StatusOr<std::optional<v1::Job>> repeated =
                  jobs->FindRepeated(caller.user, request.request_id(), request.spec());
              if (!repeated.ok()) return reply(repeated.status());
              if (repeated->has_value()) return reply(**std::move(repeated));
            }
            // A small request may name a large data set.
            if (!KeepMore(user_pool, caller, requests->DataBytes(request.spec().dataset()), reply)) return;
            requests->AdmitWithData(
                caller, request.spec(),
                [jobs, lifecycle, &request,
                 reply = std::move(reply)](absl::StatusOr<AdmittedRequest> admitted) mutable {
                  if (!admitted.ok()) return reply(admitted.status());
                  if (request.validate_only()) return reply(MakeUnsubmitted(std::move(admitted->job)));
                  // Admission may have taken long.
                  if (absl::Status status = lifecycle->CheckAcceptsJobs(); !status.ok()) {
                    return reply(std::move(status));
                  }
                  admitted->job.submitted_spec = request.spec();
                  admitted->job.request_id = request.request_id();
                  jobs->Create(std::move(admitted->job),
                               [hold = std::move(admitted->hold), reply = std::move(reply)](
                                   absl::StatusOr<v1::Job> made) mutable { reply(std::move(made)); });
                });
          });
}

}  // namespace tandem::rpc
