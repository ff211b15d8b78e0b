#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void DeleteUpload(const RpcContext& context, const v1::DeleteUploadRequest& request,
                  Reply<google::protobuf::Empty> reply) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  // It removes files.
  context.pool->Post([&context, id = *id, reply = std::move(reply)]() mutable {
    const absl::Status deleted = context.uploads->Delete(id);
    if (deleted.ok()) {
      reply(google::protobuf::Empty());
    } else {
      reply(deleted);
    }
  });
}

}  // namespace tandem::rpc
