#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void GetDaemon(const Caller& caller, const v1::GetDaemonRequest&, Reply<v1::Daemon> reply,
               const v1::Daemon* daemon) {
  v1::Daemon response = *daemon;
  response.set_caller_user(caller.user);
  response.set_caller_role(caller.role);
  reply(std::move(response));
}

}  // namespace tandem::rpc
