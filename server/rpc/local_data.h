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

// The longest that a call waits for data that is being fetched, before it says how far that is. Short, so
// that a client can show it.
inline constexpr absl::Duration kFetchWait = absl::Seconds(2);

// Has the data that `spec` names by URLs, itself or by the set that it names, brought near, and calls `then`
// once, on the user's pool as `user` or before it returns, with what is to be used and stored in the place of
// `spec`: itself, with its URLs pinned to what they led to. Errors are RemoteData::Ensure's, their fields
// below `field`
// ("spec.dataset"). A spec that is wrong for other reasons is given as it is. It reads the cache's folder:
// from a thread of that pool.
void WithLocalData(const RpcContext& context, const std::string& user, const v1::DatasetSpec& spec,
                   const std::string& field, absl::Duration wait,
                   absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)> then);

// The same for who cannot wait: the error says that the data is being fetched, where it is not there. Like
// the other it may make the daemon ask whatever host is named: it is not for viewers.
absl::StatusOr<v1::DatasetSpec> LocalDataNow(const RpcContext& context, const std::string& user,
                                             const v1::DatasetSpec& spec, const std::string& field);

// The most memory that WithLocalData keeps until it calls; 0 where it does not wait.
int64_t LocalDataBytes(const RpcContext& context, const v1::DatasetSpec& spec);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_LOCAL_DATA_H_
