#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void DeleteJob(const RpcContext& context, const Caller& caller, const v1::DeleteJobRequest& request,
               Reply<google::protobuf::Empty> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  WithOwnJob<google::protobuf::Empty>(
      context, caller, *id, request.name(), request, std::move(reply),
      [&context, &request, id = *id](Reply<google::protobuf::Empty> reply) {
        context.jobs->Delete(id,
                             [name = request.name(), reply = std::move(reply)](absl::Status status) mutable {
                               if (status.ok()) {
                                 reply(google::protobuf::Empty());
                               } else {
                                 reply(ExplainJobError(status, name));
                               }
                             });
      });
}

}  // namespace tandem::rpc
