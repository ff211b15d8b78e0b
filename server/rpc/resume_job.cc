#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/local_data.h"
#include "server/rpc/permissions.h"
#include "server/rpc/quota_checks.h"

namespace tandem::rpc {

namespace {

void Resume(const RpcContext& context, const Caller& caller, const std::string& name, const std::string& id,
            Reply<v1::Job> reply) {
  if (absl::Status status = CheckOwner(context, caller, id, name); !status.ok()) {
    reply(std::move(status));
    return;
  }
  const absl::StatusOr<v1::Job> job = context.jobs->Get(id);
  if (!job.ok()) {
    reply(ExplainJobError(job.status(), name));
    return;
  }
  // What an administrator does for another user counts against no quota.
  const int most = caller.is_admin() ? 0 : context.quota(caller.user).max_queued_jobs;
  // Of whoever has the job: it is the owner's disk that it fills.
  if (absl::Status status = CheckDiskUse(context, job->user()); !status.ok()) {
    reply(std::move(status));
    return;
  }
  auto resume = [&context, name, id, most,
                 reply = std::move(reply)](absl::StatusOr<v1::DatasetSpec> dataset) mutable {
    if (!dataset.ok()) {
      reply(dataset.status());
      return;
    }
    context.jobs->Resume(id, most, [name, reply = std::move(reply)](absl::StatusOr<v1::Job> resumed) mutable {
      if (!resumed.ok()) resumed = ExplainJobError(resumed.status(), name);
      reply(std::move(resumed));
    });
  };
  if (job->state() == v1::JOB_STATE_PAUSED || job->state() == v1::JOB_STATE_FAILED) {
    // It begins to wait again.
    if (absl::Status status = CheckQueueLength(context); !status.ok()) {
      resume(std::move(status));
      return;
    }
    // The cache may have made room since.
    WithLocalData(context, job->spec().dataset(), "spec.dataset", kFetchWait, std::move(resume));
  } else {
    resume(job->spec().dataset());
  }
}

}  // namespace

void ResumeJob(const RpcContext& context, const Caller& caller, const v1::ResumeJobRequest& request,
               Reply<v1::Job> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  // It would be cancelled at once where jobs are being cancelled for a shutdown.
  if (const absl::Status accepts = context.lifecycle->CheckAcceptsJobs(); !accepts.ok()) {
    reply(accepts);
    return;
  }
  context.pool->Post([&context, caller, &request, id = *id, reply = std::move(reply)]() mutable {
    Resume(context, caller, request.name(), id, std::move(reply));
  });
}

}  // namespace tandem::rpc
