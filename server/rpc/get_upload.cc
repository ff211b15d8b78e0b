#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void GetUpload(const Caller& caller, const v1::GetUploadRequest& request, Reply<v1::Upload> reply,
               Uploads* uploads, FairPool* user_pool) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) return reply(id.status());
  // Syncs the upload, and may wait for a caller that holds its lock.
  PostFor(user_pool, caller, request, std::move(reply),
          [uploads, id = *id](Reply<v1::Upload> reply) { reply(uploads->Get(id)); });
}

}  // namespace tandem::rpc
