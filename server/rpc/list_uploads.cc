#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void ListUploads(const RpcContext& context, const v1::ListUploadsRequest&,
                 Reply<v1::ListUploadsResponse> reply) {
  // It makes durable what came.
  context.pool->Post([&context, reply = std::move(reply)]() mutable {
    v1::ListUploadsResponse response;
    for (v1::Upload& upload : context.uploads->List()) *response.add_uploads() = std::move(upload);
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
