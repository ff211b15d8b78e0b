#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void DeleteUpload(const RpcContext& context, const Caller& caller, const v1::DeleteUploadRequest& request,
                  Reply<google::protobuf::Empty> reply) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) return reply(id.status());
  // Removes files.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context, caller, id = *id](Reply<google::protobuf::Empty> reply) {
                absl::Status deleted = CheckUploadOwner(context, caller, id);
                if (deleted.ok()) deleted = context.uploads->Delete(id);
                reply(EmptyOr(deleted));
              });
}

}  // namespace tandem::rpc
