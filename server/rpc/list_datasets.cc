#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void ListDatasets(const RpcContext& context, const Caller& caller, const v1::ListDatasetsRequest& request,
                  Reply<v1::ListDatasetsResponse> reply) {
  // It describes what nobody has described yet.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context](Reply<v1::ListDatasetsResponse> reply) {
                v1::ListDatasetsResponse response;
                for (v1::Dataset& dataset : context.datasets->List())
                  *response.add_datasets() = std::move(dataset);
                reply(std::move(response));
              });
}

}  // namespace tandem::rpc
