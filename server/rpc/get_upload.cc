#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void GetUpload(const RpcContext& context, const Caller& caller, const v1::GetUploadRequest& request,
               Reply<v1::Upload> reply) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) return reply(id.status());
  // Syncs the upload, and may wait for a caller that holds its lock.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context, id = *id](Reply<v1::Upload> reply) { reply(context.uploads->Get(id)); });
}

}  // namespace tandem::rpc
