#include <string>
#include <utility>

#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void GetDataset(const RpcContext& context, const Caller& caller, const v1::GetDatasetRequest& request,
                Reply<v1::Dataset> reply) {
  if (request.name().empty()) {
    return reply(FieldError("name", "is required: \"datasets/<id>\" or the id alone"));
  }
  // May read all samples.
  PostForUser(
      context, caller.user, request, std::move(reply),
      [&context, name = request.name()](Reply<v1::Dataset> reply) { reply(context.datasets->Get(name)); });
}

}  // namespace tandem::rpc
