#include <optional>
#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/local_data.h"

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
    WithLocalData(
        context, request.dataset().spec(), "dataset.spec", kFetchWait,
        [&context, &request, reply = std::move(reply)](absl::StatusOr<v1::DatasetSpec> spec) mutable {
          reply(spec.ok() ? context.registry->Create(request, *spec) : spec.status());
        });
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
