#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void GetDaemon(const RpcContext& context, const Caller& caller, const v1::GetDaemonRequest&,
               Reply<v1::Daemon> reply) {
  v1::Daemon daemon = context.daemon;
  daemon.set_caller_user(caller.user);
  daemon.set_caller_role(caller.role);
  reply(std::move(daemon));
}

}  // namespace tandem::rpc
