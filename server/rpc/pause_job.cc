#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {

void PauseJob(const Caller& caller, const v1::PauseJobRequest& request, Reply<v1::Job> reply,
              JobMachine* jobs, FairPool* pool) {
  WithOwnJob(caller, request.name(), request, std::move(reply), jobs, pool,
             [jobs](const std::string& id, Reply<v1::Job> reply) { jobs->Pause(id, std::move(reply)); });
}

}  // namespace tandem::rpc
