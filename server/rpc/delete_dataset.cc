#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void DeleteDataset(const Caller& caller, const v1::DeleteDatasetRequest& request,
                   Reply<google::protobuf::Empty> reply, DatasetRegistry* registry,
                   const DatasetCatalog* datasets, FairPool* user_pool) {
  // Removes files and waits for the database.
  PostFor(user_pool, caller, request, std::move(reply),
          [registry, datasets, caller,
           wanted = v1::DeleteDatasetRequest(request)](Reply<google::protobuf::Empty> reply) mutable {
            absl::Status deleted = CheckDatasetOwner(caller, &wanted, registry, datasets);
            if (deleted.ok()) deleted = registry->Delete(wanted);
            reply(EmptyOr(deleted));
          });
}

}  // namespace tandem::rpc
