#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void ListUploads(const Caller& caller, const v1::ListUploadsRequest& request,
                 Reply<v1::ListUploadsResponse> reply, Uploads* uploads, FairPool* user_pool) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  // Syncs the uploads, and may wait for a caller that holds a lock.
  PostFor(user_pool, caller, request, std::move(reply),
          [uploads, page = *page](Reply<v1::ListUploadsResponse> reply) {
            v1::ListUploadsResponse response;
            response.set_next_page_token(AddPage(uploads->List(), 0, page, response.mutable_uploads()));
            reply(std::move(response));
          });
}

}  // namespace tandem::rpc
