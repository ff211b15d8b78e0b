#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void DeleteJob(const RpcContext& context, const Caller& caller, const v1::DeleteJobRequest& request,
               Reply<google::protobuf::Empty> reply) {
  WithOwnJob(context, caller, request.name(), request, std::move(reply),
             [&context](const std::string& id, Reply<google::protobuf::Empty> reply) {
               context.jobs->Delete(id, [reply = std::move(reply)](const absl::Status& status) mutable {
                 reply(EmptyOr(status));
               });
             });
}

}  // namespace tandem::rpc
