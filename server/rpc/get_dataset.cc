#include <string>
#include <utility>

#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void GetDataset(const Caller& caller, const v1::GetDatasetRequest& request, Reply<v1::Dataset> reply,
                const DatasetCatalog* datasets, FairPool* user_pool) {
  if (request.name().empty()) {
    return reply(FieldError("name", "is required: \"datasets/<id>\" or the id alone"));
  }
  // May read all samples.
  PostFor(user_pool, caller, request, std::move(reply),
          [datasets, name = request.name()](Reply<v1::Dataset> reply) { reply(datasets->Get(name)); });
}

}  // namespace tandem::rpc
