#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void ListUploads(const RpcContext& context, const Caller& caller, const v1::ListUploadsRequest& request,
                 Reply<v1::ListUploadsResponse> reply) {
  // It makes durable what came, and waits for who looks through an upload to go on with it.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context](Reply<v1::ListUploadsResponse> reply) {
                v1::ListUploadsResponse response;
                for (v1::Upload& upload : context.uploads->List())
                  *response.add_uploads() = std::move(upload);
                reply(std::move(response));
              });
}

}  // namespace tandem::rpc
