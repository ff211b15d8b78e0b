#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultDatasetPageSize = 100;

}  // namespace

void ListDatasets(const RpcContext& context, const Caller& caller, const v1::ListDatasetsRequest& request,
                  Reply<v1::ListDatasetsResponse> reply) {
  const absl::StatusOr<Page> page = PageOf(request, kDefaultDatasetPageSize);
  if (!page.ok()) return reply(page.status());
  // May read sets that were not described before.
  PostForUser(
      context, caller.user, request, std::move(reply),
      [&context, page = *page](Reply<v1::ListDatasetsResponse> reply) {
        v1::ListDatasetsResponse response;
        // One more set tells if another page exists.
        response.set_next_page_token(AddPage(context.datasets->List(page.begin, page.size + 1, kPageBytes),
                                             page.begin, page, response.mutable_datasets()));
        reply(std::move(response));
      });
}

}  // namespace tandem::rpc
