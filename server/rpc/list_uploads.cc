#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void ListUploads(const RpcContext& context, const Caller& caller, const v1::ListUploadsRequest& request,
                 Reply<v1::ListUploadsResponse> reply) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  // Syncs the uploads, and may wait for a caller that holds a lock.
  PostForUser(
      context, caller.user, request, std::move(reply),
      [&context, page = *page](Reply<v1::ListUploadsResponse> reply) {
        v1::ListUploadsResponse response;
        response.set_next_page_token(AddPage(context.uploads->List(), 0, page, response.mutable_uploads()));
        reply(std::move(response));
      });
}

}  // namespace tandem::rpc
