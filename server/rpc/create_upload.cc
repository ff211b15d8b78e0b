#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/quota_checks.h"

namespace tandem::rpc {

void CreateUpload(const RpcContext& context, const Caller& caller, const v1::CreateUploadRequest& request,
                  Reply<v1::Upload> reply) {
  // It makes files.
  context.pool->Post([&context, user = caller.user, &request, reply = std::move(reply)]() mutable {
    v1::Upload wanted = request.upload();
    if (absl::Status status = CheckDiskUse(context, user, wanted.bytes()); !status.ok()) {
      return reply(std::move(status));
    }
    wanted.set_user(user);
    reply(context.uploads->Create(wanted));
  });
}

}  // namespace tandem::rpc
