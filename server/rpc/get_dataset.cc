#include <utility>

#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

void GetDataset(const RpcContext& context, const v1::GetDatasetRequest& request, Reply<v1::Dataset> reply) {
  if (request.name().empty()) {
    reply(FieldError("name", "is required: \"datasets/<id>\" or the id alone"));
    return;
  }
  // It reads the files.
  context.pool->Post([&context, name = request.name(), reply = std::move(reply)]() mutable {
    reply(context.datasets->Get(name));
  });
}

}  // namespace tandem::rpc
