#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void DeleteDataset(const RpcContext& context, const v1::DeleteDatasetRequest& request,
                   Reply<google::protobuf::Empty> reply) {
  // It removes files, and waits for the database.
  context.pool->Post([&context, &request, reply = std::move(reply)]() mutable {
    const absl::Status deleted = context.registry->Delete(request);
    if (deleted.ok()) {
      reply(google::protobuf::Empty());
    } else {
      reply(deleted);
    }
  });
}

}  // namespace tandem::rpc
