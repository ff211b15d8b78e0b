#ifndef TANDEM_SERVER_RPC_LOCAL_DATA_H_
#define TANDEM_SERVER_RPC_LOCAL_DATA_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/remote_data.h"
#include "server/rpc/fair_pool.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem::rpc {

// The longest time that a call waits for a fetch before it reports the progress. Short, so that a client can
// show the progress.
inline constexpr absl::Duration kFetchWait = absl::Seconds(2);

// Fetches the data that specs name by URLs, directly or through a set. Thread-safe.
class LocalData {
 public:
  // All pointers must outlive this object. A null `remote` fetches nothing.
  LocalData(const DatasetCatalog* datasets, RemoteData* remote, FairPool* user_pool)
      : datasets_(datasets), remote_(remote), user_pool_(user_pool) {}

  // Fetches the data of `spec`, for at most kFetchWait. Calls `then` once, on the user's pool as `user` or
  // before returning, with the spec to use and store: `spec` with its URLs pinned. Errors are those of
  // RemoteData::Ensure, with fields below `field` ("spec.dataset"). An otherwise invalid spec is returned
  // unchanged. Reads the cache's folder, so call it on a thread of that pool.
  void Ensure(const std::string& user, const v1::DatasetSpec& spec, const std::string& field,
              absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)> then) const;

  // Like Ensure, for all data of a job: its data set and its initial weights. Fetches both at the same time.
  // Fields begin with "spec.".
  void EnsureJob(const std::string& user, const v1::JobSpec& spec,
                 absl::AnyInvocable<void(absl::StatusOr<v1::JobSpec>)> then) const;

  // Like Ensure, for callers that cannot wait. If the data is not here, the error is DATA_BEING_FETCHED.
  // Ensure and EnsureNow may make the daemon connect to any host that a user names, so viewers must not call
  // them.
  absl::StatusOr<v1::DatasetSpec> EnsureNow(const std::string& user, const v1::DatasetSpec& spec,
                                            const std::string& field) const;

  // Returns the most memory that Ensure keeps until the callback; 0 if it does not wait.
  int64_t BytesOf(const v1::DatasetSpec& spec) const;
  // The same for EnsureJob.
  int64_t BytesOfJob(const v1::JobSpec& spec) const;

 private:
  // Returns the expanded spec if it has URLs. Returns nullopt for an invalid spec, which other checks report.
  std::optional<v1::DatasetSpec> WithUrls(const v1::DatasetSpec& spec) const;
  // Returns true if the initial weights are a URL that may be fetched.
  bool HasWeightsUrl(const v1::JobSpec& spec) const;

  const DatasetCatalog* const datasets_;
  RemoteData* const remote_;
  FairPool* const user_pool_;
};

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_LOCAL_DATA_H_
