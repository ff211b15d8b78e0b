#include <optional>
#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/job_request.h"
#include "server/rpc/local_data.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {
namespace {

absl::Status CheckUpload(const RpcContext& context, const Caller& caller, const std::string& upload) {
  // The check of the whole request reports an invalid name.
  const absl::StatusOr<std::string> id = ParseUploadName(upload);
  return id.ok() ? CheckUploadOwner(context, caller, *id) : absl::OkStatus();
}

void Create(const RpcContext& context, const Caller& caller, const v1::CreateDatasetRequest& request,
            Reply<v1::Dataset> reply) {
  if (absl::Status status = CheckKnownFields(request); !status.ok()) return reply(std::move(status));
  // Before any refusal: data that the first request used may be gone now.
  absl::StatusOr<std::optional<v1::Dataset>> repeated = context.registry->FindRepeated(request, caller.user);
  if (!repeated.ok()) {
    reply(repeated.status());
  } else if (repeated->has_value()) {
    reply(**std::move(repeated));
  } else if (absl::Status status = CheckUpload(context, caller, request.upload()); !status.ok()) {
    reply(std::move(status));
  } else if (KeepMore(context, caller.user, LocalDataBytes(context, request.dataset().spec()), reply)) {
    WithLocalData(context, caller.user, request.dataset().spec(), "dataset.spec", kFetchWait,
                  [&context, &request, user = caller.user,
                   reply = std::move(reply)](absl::StatusOr<v1::DatasetSpec> spec) mutable {
                    reply(spec.ok() ? context.registry->Create(request, *spec, user) : spec.status());
                  });
  }
}

}  // namespace

void CreateDataset(const RpcContext& context, const Caller& caller, const v1::CreateDatasetRequest& request,
                   Reply<v1::Dataset> reply) {
  if (absl::Status status = CheckSpecSize(request.dataset().spec(), "dataset.spec"); !status.ok()) {
    return reply(std::move(status));
  }
  // Reads the data's files and waits for the database.
  PostForUser(context, caller.user, request, std::move(reply),
              [&context, caller, &request](Reply<v1::Dataset> reply) {
                Create(context, caller, request, std::move(reply));
              });
}

}  // namespace tandem::rpc
