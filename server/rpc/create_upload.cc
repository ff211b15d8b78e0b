#include <utility>

#include "server/datasets/upload_folder.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"
#include "server/rpc/quotas.h"

namespace tandem::rpc {

void CreateUpload(const Caller& caller, const v1::CreateUploadRequest& request, Reply<v1::Upload> reply,
                  Uploads* uploads, const Quotas* quotas, FairPool* user_pool) {
  // Creates files.
  PostFor(user_pool, caller, request, std::move(reply),
          [uploads, quotas, user = caller.user, &request](Reply<v1::Upload> reply) {
            v1::Upload wanted = request.upload();
            wanted.set_user(user);
            const int64_t added = UploadFolder::BytesOnDisk(wanted);
            reply(uploads->Create(
                wanted, [&](int64_t uploaded) { return quotas->CheckUpload(user, uploaded, added); }));
          });
}

}  // namespace tandem::rpc
