#include <optional>
#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/local_data.h"
#include "server/rpc/permissions.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

absl::Status CheckUpload(const Caller& caller, const std::string& upload, Uploads* uploads) {
  // The check of the whole request reports an invalid name.
  const absl::StatusOr<std::string> id = ParseUploadName(upload);
  return id.ok() ? CheckUploadOwner(caller, *id, uploads) : absl::OkStatus();
}

}  // namespace

void CreateDataset(const Caller& caller, const v1::CreateDatasetRequest& request, Reply<v1::Dataset> reply,
                   DatasetRegistry* registry, Uploads* uploads, const LocalData* local_data,
                   FairPool* user_pool) {
  if (absl::Status status = CheckSpecSize(request.dataset().spec(), "dataset.spec"); !status.ok()) {
    return reply(std::move(status));
  }
  // Reads the data's files and waits for the database.
  PostFor(user_pool, caller, request, std::move(reply),
          [registry, uploads, local_data, user_pool, caller, &request](Reply<v1::Dataset> reply) {
            if (absl::Status status = CheckKnownFields(request); !status.ok()) {
              return reply(std::move(status));
            }
            // Before any refusal: data that the first request used may be gone now.
            absl::StatusOr<std::optional<v1::Dataset>> repeated =
                registry->FindRepeated(request, caller.user);
            if (!repeated.ok()) {
              reply(repeated.status());
            } else if (repeated->has_value()) {
              reply(**std::move(repeated));
            } else if (absl::Status status = CheckUpload(caller, request.upload(), uploads); !status.ok()) {
              reply(std::move(status));
            } else if (KeepMore(user_pool, caller, local_data->BytesOf(request.dataset().spec()), reply)) {
              local_data->Ensure(caller.user, request.dataset().spec(), "dataset.spec",
                                 [registry, &request, user = caller.user,
                                  reply = std::move(reply)](absl::StatusOr<v1::DatasetSpec> spec) mutable {
                                   reply(spec.ok() ? registry->Create(request, *spec, user) : spec.status());
                                 });
            }
          });
}

}  // namespace tandem::rpc
