#include <utility>

#include "server/datasets/upload_folder.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"
#include "server/rpc/quota_checks.h"

namespace tandem::rpc {

void CreateUpload(const RpcContext& context, const Caller& caller, const v1::CreateUploadRequest& request,
                  Reply<v1::Upload> reply) {
  // Creates files.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context, user = caller.user, &request](Reply<v1::Upload> reply) {
                v1::Upload wanted = request.upload();
                wanted.set_user(user);
                const int64_t added = UploadFolder::BytesOnDisk(wanted);
                reply(context.uploads->Create(
                    wanted, [&](int64_t uploaded) { return CheckUpload(context, user, uploaded, added); }));
              });
}

}  // namespace tandem::rpc
