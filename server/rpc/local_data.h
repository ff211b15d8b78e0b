#ifndef TANDEM_SERVER_RPC_LOCAL_DATA_H_
#define TANDEM_SERVER_RPC_LOCAL_DATA_H_

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/rpc_context.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::rpc {

// The longest time that a call waits for a fetch before it reports the progress. Short, so that a client can
// show the progress.
inline constexpr absl::Duration kFetchWait = absl::Seconds(2);

// Fetches the data that `spec` names by URLs, directly or through a set. Calls `then` once, on the user's
// pool as `user` or before returning, with the spec to use and store: `spec` with its URLs pinned. Errors are
// those of RemoteData::Ensure, with fields below `field` ("spec.dataset"). An otherwise invalid spec is
// returned unchanged. Reads the cache's folder, so call it on a thread of that pool.
void WithLocalData(const RpcContext& context, const std::string& user, const v1::DatasetSpec& spec,
                   const std::string& field, absl::Duration wait,
                   absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)> then);

// The same for callers that cannot wait: if the data is not here, the error says that it is being fetched.
// Both functions may make the daemon connect to any named host, so they are not for viewers.
absl::StatusOr<v1::DatasetSpec> LocalDataNow(const RpcContext& context, const std::string& user,
                                             const v1::DatasetSpec& spec, const std::string& field);

// Returns the most memory that WithLocalData keeps until the callback; 0 if it does not wait.
int64_t LocalDataBytes(const RpcContext& context, const v1::DatasetSpec& spec);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_LOCAL_DATA_H_
