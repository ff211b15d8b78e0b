#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void DeleteDataset(const RpcContext& context, const Caller& caller, const v1::DeleteDatasetRequest& request,
                   Reply<google::protobuf::Empty> reply) {
  // It removes files, and waits for the database.
  context.user_pool->Post(caller.user, [&context, caller, wanted = v1::DeleteDatasetRequest(request),
                                        reply = std::move(reply)]() mutable {
    absl::Status deleted = CheckDatasetOwner(context, caller, &wanted);
    if (deleted.ok()) deleted = context.registry->Delete(wanted);
    if (deleted.ok()) {
      reply(google::protobuf::Empty());
    } else {
      reply(deleted);
    }
  });
}

}  // namespace tandem::rpc
