#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void GetUpload(const RpcContext& context, const v1::GetUploadRequest& request, Reply<v1::Upload> reply) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  // It makes durable what came.
  context.pool->Post(
      [&context, id = *id, reply = std::move(reply)]() mutable { reply(context.uploads->Get(id)); });
}

}  // namespace tandem::rpc
