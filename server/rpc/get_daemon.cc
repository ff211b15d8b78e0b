#include "server/rpc/handlers.h"

namespace tandem::rpc {

void GetDaemon(const RpcContext& context, const v1::GetDaemonRequest&, Reply<v1::Daemon> reply) {
  reply(context.daemon);
}

}  // namespace tandem::rpc
