#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void ListDatasets(const RpcContext& context, const Caller& caller, const v1::ListDatasetsRequest&,
                  Reply<v1::ListDatasetsResponse> reply) {
  // It describes what nobody has described yet.
  context.user_pool->Post(caller.user, [&context, reply = std::move(reply)]() mutable {
    v1::ListDatasetsResponse response;
    for (v1::Dataset& dataset : context.datasets->List()) *response.add_datasets() = std::move(dataset);
    reply(std::move(response));
  });
}

}  // namespace tandem::rpc
