#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void CancelJob(const RpcContext& context, const v1::CancelJobRequest& request, Reply<v1::Job> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  context.jobs->Cancel(
      *id, v1::STATE_REASON_CANCEL_REQUESTED,
      [name = request.name(), reply = std::move(reply)](absl::StatusOr<v1::Job> job) mutable {
        if (!job.ok()) job = ExplainJobError(job.status(), name);
        reply(std::move(job));
      });
}

}  // namespace tandem::rpc
