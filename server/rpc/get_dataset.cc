#include <optional>
#include <string>
#include <utility>

#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {
namespace {

void Get(const RpcContext& context, const std::string& user, const std::string& name,
         Reply<v1::Dataset> reply) {
  absl::StatusOr<std::optional<v1::Dataset>> remembered = context.datasets->GetRemembered(name);
  if (!remembered.ok()) {
    reply(remembered.status());
    return;
  }
  if (remembered->has_value()) {
    reply(**std::move(remembered));
    return;
  }
  context.whole_set_pool->Post(user, [&context, name, reply = std::move(reply)]() mutable {
    if (absl::Status serving = context.lifecycle->CheckServing(); !serving.ok()) {
      reply(std::move(serving));
    } else {
      reply(context.datasets->Get(name));
    }
  });
}

}  // namespace

void GetDataset(const RpcContext& context, const Caller& caller, const v1::GetDatasetRequest& request,
                Reply<v1::Dataset> reply) {
  if (request.name().empty()) {
    reply(FieldError("name", "is required: \"datasets/<id>\" or the id alone"));
    return;
  }
  // It reads the files.
  context.user_pool->Post(
      caller.user, [&context, user = caller.user, name = request.name(), reply = std::move(reply)]() mutable {
        Get(context, user, name, std::move(reply));
      });
}

}  // namespace tandem::rpc
