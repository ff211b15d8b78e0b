#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void GetJob(const RpcContext& context, const Caller& caller, const v1::GetJobRequest& request,
            Reply<v1::Job> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  PostToLook(context, caller, request, std::move(reply),
             [&context, &request, id = *id](Reply<v1::Job> reply) {
               absl::StatusOr<v1::Job> job = context.jobs->Get(id);
               if (!job.ok()) job = ExplainJobError(job.status(), request.name());
               reply(std::move(job));
             });
}

}  // namespace tandem::rpc
