#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/local_data.h"
#include "server/rpc/post_for.h"
#include "server/store/records.h"

namespace tandem::rpc {
namespace {

int64_t NumberIn(const std::map<std::string, std::string>& details, const std::string& key) {
  const auto found = details.find(key);
  int64_t number = 0;
  return found != details.end() && absl::SimpleAtoi(found->second, &number) ? number : 0;
}

// Returns a set that is being fetched, with the progress in `status`.
v1::Dataset Fetching(const std::string& id, const absl::Status& status) {
  const std::map<std::string, std::string> details = GetReasonDetails(status);
  v1::Dataset dataset;
  dataset.set_name(DatasetName(id));
  dataset.set_state(v1::DATASET_STATE_FETCHING);
  dataset.set_origin(v1::DATASET_ORIGIN_FETCHED);
  dataset.mutable_fetch()->set_bytes_done(NumberIn(details, "bytes_done"));
  dataset.mutable_fetch()->set_bytes_total(NumberIn(details, "bytes_total"));
  dataset.mutable_fetch()->set_files_done(NumberIn(details, "files_done"));
  dataset.mutable_fetch()->set_files_total(NumberIn(details, "files_total"));
  return dataset;
}

}  // namespace

void FetchDataset(const Caller& caller, const v1::FetchDatasetRequest& request, Reply<v1::Dataset> reply,
                  const DatasetCatalog* datasets, RemoteData* remote, FairPool* user_pool) {
  const std::string id = DatasetId(request.name());
  if (id.empty()) {
    return reply(FieldError("name", "is required: the name of a public data set, such as \"mnist\""));
  }
  PostFor(user_pool, caller, request, std::move(reply),
          [datasets, remote, user_pool, user = caller.user, id](Reply<v1::Dataset> reply) {
            // A set that already has this name is enough.
            absl::StatusOr<v1::Dataset> present = datasets->DescribeById(id);
            if (present.ok() && present->problem().empty()) return reply(std::move(present));
            if (remote == nullptr) {
              reply(WithReason(
                  absl::FailedPreconditionError("name: cannot fetch the data set: this daemon may not "
                                                "fetch data; its owner can allow it with --fetch-from"),
                  "FETCH_NOT_ALLOWED"));
              return;
            }
            remote->FetchPublicSet(
                id, user, kFetchWait,
                [datasets, user_pool, user, id, reply = std::move(reply)](absl::Status status) mutable {
                  if (GetReason(status) == kDataBeingFetched) {
                    reply(Fetching(id, status));
                  } else if (!status.ok()) {
                    reply(std::move(status));
                  } else {
                    // Reads the files.
                    user_pool->Post(user, [datasets, id, reply = std::move(reply)]() mutable {
                      reply(datasets->DescribeById(id));
                    });
                  }
                });
          });
}

}  // namespace tandem::rpc
