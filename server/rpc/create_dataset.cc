#include <optional>
#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

void Create(const RpcContext& context, const v1::CreateDatasetRequest& request, Reply<v1::Dataset> reply) {
  // Before anything may refuse it: what the first request found may be gone since.
  absl::StatusOr<std::optional<v1::Dataset>> repeated = context.registry->FindRepeated(request);
  if (!repeated.ok()) {
    reply(repeated.status());
  } else if (repeated->has_value()) {
    reply(**std::move(repeated));
  } else {
    reply(context.registry->Create(request, request.dataset().spec()));
  }
}

}  // namespace

void CreateDataset(const RpcContext& context, const v1::CreateDatasetRequest& request,
                   Reply<v1::Dataset> reply) {
  // It reads the data's files, and waits for the database.
  context.pool->Post([&context, &request, reply = std::move(reply)]() mutable {
    Create(context, request, std::move(reply));
  });
}

}  // namespace tandem::rpc
