#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void ResumeJob(const RpcContext& context, const v1::ResumeJobRequest& request, Reply<v1::Job> reply) {
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
  context.jobs->Resume(
      *id, [name = request.name(), reply = std::move(reply)](absl::StatusOr<v1::Job> job) mutable {
        if (!job.ok()) job = ExplainJobError(job.status(), name);
        reply(std::move(job));
      });
}

}  // namespace tandem::rpc
