#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void DeleteDataset(const RpcContext& context, const Caller& caller, const v1::DeleteDatasetRequest& request,
                   Reply<google::protobuf::Empty> reply) {
  // Removes files and waits for the database.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context, caller,
               wanted = v1::DeleteDatasetRequest(request)](Reply<google::protobuf::Empty> reply) mutable {
                absl::Status deleted = CheckDatasetOwner(context, caller, &wanted);
                if (deleted.ok()) deleted = context.registry->Delete(wanted);
                reply(EmptyOr(deleted));
              });
}

}  // namespace tandem::rpc
