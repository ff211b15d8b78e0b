#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void CreateUpload(const RpcContext& context, const v1::CreateUploadRequest& request,
                  Reply<v1::Upload> reply) {
  // It makes files.
  context.pool->Post([&context, &request, reply = std::move(reply)]() mutable {
    reply(context.uploads->Create(request.upload()));
  });
}

}  // namespace tandem::rpc
