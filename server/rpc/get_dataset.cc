#include <optional>
#include <string>
#include <utility>

#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

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
  PostFor(context.whole_set_pool, user, name.size(), std::move(reply),
          [&context, name](Reply<v1::Dataset> reply) {
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
  PostForUser(context, caller.user, request, std::move(reply),
              [&context, user = caller.user, name = request.name()](Reply<v1::Dataset> reply) {
                Get(context, user, name, std::move(reply));
              });
}

}  // namespace tandem::rpc
