#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void PauseJob(const RpcContext& context, const Caller& caller, const v1::PauseJobRequest& request,
              Reply<v1::Job> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  WithOwnJob<v1::Job>(context, caller, *id, request.name(), request, std::move(reply),
                      [&context, &request, id = *id](Reply<v1::Job> reply) {
                        context.jobs->Pause(id, [name = request.name(), reply = std::move(reply)](
                                                    absl::StatusOr<v1::Job> job) mutable {
                          if (!job.ok()) job = ExplainJobError(job.status(), name);
                          reply(std::move(job));
                        });
                      });
}

}  // namespace tandem::rpc
