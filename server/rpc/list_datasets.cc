#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

constexpr int kDefaultDatasetPageSize = 100;

}  // namespace

void ListDatasets(const Caller& caller, const v1::ListDatasetsRequest& request,
                  Reply<v1::ListDatasetsResponse> reply, const DatasetCatalog* datasets,
                  FairPool* user_pool) {
  const absl::StatusOr<Page> page = PageOf(request, kDefaultDatasetPageSize);
  if (!page.ok()) return reply(page.status());
  // May read sets that were not described before.
  PostFor(user_pool, caller, request, std::move(reply),
          [datasets, page = *page](Reply<v1::ListDatasetsResponse> reply) {
            v1::ListDatasetsResponse response;
            // One more set tells if another page exists.
            response.set_next_page_token(AddPage(datasets->List(page.begin, page.size + 1, kPageBytes),
                                                 page.begin, page, response.mutable_datasets()));
            reply(std::move(response));
          });
}

}  // namespace tandem::rpc
