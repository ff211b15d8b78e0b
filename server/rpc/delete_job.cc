#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void DeleteJob(const RpcContext& context, const v1::DeleteJobRequest& request,
               Reply<google::protobuf::Empty> reply) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  context.jobs->Delete(*id, [name = request.name(), reply = std::move(reply)](absl::Status status) mutable {
    if (status.ok()) {
      reply(google::protobuf::Empty());
    } else {
      reply(ExplainJobError(status, name));
    }
  });
}

}  // namespace tandem::rpc
