#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void DeleteUpload(const RpcContext& context, const Caller& caller, const v1::DeleteUploadRequest& request,
                  Reply<google::protobuf::Empty> reply) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  // It removes files.
  context.user_pool->Post(caller.user, [&context, caller, id = *id, reply = std::move(reply)]() mutable {
    absl::Status deleted = CheckUploadOwner(context, caller, id);
    if (deleted.ok()) deleted = context.uploads->Delete(id);
    if (deleted.ok()) {
      reply(google::protobuf::Empty());
    } else {
      reply(deleted);
    }
  });
}

}  // namespace tandem::rpc
