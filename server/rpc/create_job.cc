#include <optional>
#include <string>
#include <utility>

#include "engine/base/field_violations.h"
#include "server/jobs/uploaded_weights.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"
#include "server/rpc/reserved_weights.h"

namespace tandem::rpc {
namespace {

absl::Status CheckRequest(const v1::CreateJobRequest& request) {
  if (absl::Status status = CheckSpecSize(request.spec()); !status.ok()) return status;
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) return status;
  if (!request.has_spec()) return FieldError("spec", "is required; describe the job");
  return absl::OkStatus();
}

// Creates the job.
void Make(JobMachine* jobs, AdmittedRequest admitted, Reply<v1::Job> reply) {
  jobs->Create(std::move(admitted.job),
               [hold = std::move(admitted.hold),
                reply = std::move(reply)](absl::StatusOr<v1::Job> made) mutable { reply(std::move(made)); });
}

// Creates a job that starts from an uploaded file.
void MakeKeeping(JobMachine* jobs, Uploads* uploads, FairPool* user_pool, UploadedFile uploaded,
                 AdmittedRequest admitted, Reply<v1::Job> reply) {
  JobMachine::NewJob reserving;
  reserving.spec.set_name(admitted.job.spec.name());
  reserving.user = admitted.job.user;
  reserving.max_queued_jobs = admitted.job.max_queued_jobs;
  ReserveWithWeights(
      jobs, uploads, user_pool, reserving, std::move(uploaded),
      [jobs, user_pool, admitted = std::move(admitted),
       reply = std::move(reply)](absl::StatusOr<std::string> id) mutable {
        if (!id.ok()) return reply(id.status());
        admitted.job.reserved_id = *id;
        std::string user = admitted.job.user;
        Make(jobs, std::move(admitted),
             Reply<v1::Job>([jobs, user_pool, user = std::move(user), id = *std::move(id),
                             reply = std::move(reply)](absl::StatusOr<v1::Job> made) mutable {
               if (made.ok() && made->folder() == jobs->FolderOf(id)) return reply(std::move(made));
               // A concurrent request with the same id came first, or the creation failed.
               user_pool->Post(user, [jobs, id, made = std::move(made), reply = std::move(reply)]() mutable {
                 ReleaseWithWeights(jobs, id);
                 reply(std::move(made));
               });
             }));
      });
}

}  // namespace

void CreateJob(const Caller& caller, const v1::CreateJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, const Lifecycle* lifecycle, const JobRequests* requests, Uploads* uploads,
               FairPool* user_pool) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return reply(std::move(status));
  // Reads the database; admission reads data sets.
  PostFor(user_pool, caller, request, std::move(reply),
          [jobs, lifecycle, requests, uploads, user_pool, caller, &request](Reply<v1::Job> reply) {
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
            // A small request may name a large data set, and may wait for data.
            if (!KeepMore(user_pool, caller, requests->DataBytes(request.spec()), reply)) return;
            requests->AdmitWithData(caller, request.spec(),
                                    [jobs, lifecycle, uploads, user_pool, &request, reply = std::move(reply)](
                                        absl::StatusOr<AdmittedRequest> admitted) mutable {
                                      if (!admitted.ok()) return reply(admitted.status());
                                      if (request.validate_only())
                                        return reply(MakeUnsubmitted(std::move(admitted->job)));
                                      // Admission may have taken long.
                                      if (absl::Status status = lifecycle->CheckAcceptsJobs(); !status.ok()) {
                                        return reply(std::move(status));
                                      }
                                      admitted->job.submitted_spec = request.spec();
                                      admitted->job.request_id = request.request_id();
                                      std::optional<UploadedFile> uploaded =
                                          UploadedWeights(request.spec().initial_weights());
                                      if (!uploaded.has_value())
                                        return Make(jobs, *std::move(admitted), std::move(reply));
                                      MakeKeeping(jobs, uploads, user_pool, *std::move(uploaded),
                                                  *std::move(admitted), std::move(reply));
                                    });
          });
}

}  // namespace tandem::rpc
