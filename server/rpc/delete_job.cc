#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void DeleteJob(const Caller& caller, const v1::DeleteJobRequest& request,
               Reply<google::protobuf::Empty> reply, JobMachine* jobs, FairPool* pool) {
  WithOwnJob(caller, request.name(), request, std::move(reply), jobs, pool,
             [jobs](const std::string& id, Reply<google::protobuf::Empty> reply) {
               jobs->Delete(id, [reply = std::move(reply)](const absl::Status& status) mutable {
                 reply(EmptyOr(status));
               });
             });
}

}  // namespace tandem::rpc
