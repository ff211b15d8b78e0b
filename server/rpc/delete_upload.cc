#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void DeleteUpload(const Caller& caller, const v1::DeleteUploadRequest& request,
                  Reply<google::protobuf::Empty> reply, Uploads* uploads, FairPool* user_pool) {
  const absl::StatusOr<std::string> id = ParseUploadName(request.name());
  if (!id.ok()) return reply(id.status());
  // Removes files.
  PostFor(user_pool, caller, request, std::move(reply),
          [uploads, caller, id = *id](Reply<google::protobuf::Empty> reply) {
            absl::Status deleted = CheckUploadOwner(caller, id, uploads);
            if (deleted.ok()) deleted = uploads->Delete(id);
            reply(EmptyOr(deleted));
          });
}

}  // namespace tandem::rpc
