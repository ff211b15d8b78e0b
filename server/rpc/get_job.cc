#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void GetJob(const RpcContext& context, const v1::GetJobRequest& request, Reply<v1::Job> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  context.pool->Post([&context, &request, id = *id, reply = std::move(reply)]() mutable {
    absl::StatusOr<v1::Job> job = context.jobs->Get(id);
    if (!job.ok()) job = ExplainJobError(job.status(), request.name());
    reply(std::move(job));
  });
}

}  // namespace tandem::rpc
