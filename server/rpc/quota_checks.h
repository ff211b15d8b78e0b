#ifndef TANDEM_SERVER_RPC_QUOTA_CHECKS_H_
#define TANDEM_SERVER_RPC_QUOTA_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/rpc/rpc_context.h"

// Limits that are checked before something is created. LIMITS.md lists all limits.

namespace tandem::rpc {

// RESOURCE_EXHAUSTED if the user's jobs, uploads and data sets use up the user's disk quota.
absl::Status CheckDiskUse(const RpcContext& context, const std::string& user);

// RESOURCE_EXHAUSTED if a new upload of `added` bytes would exceed the user's disk quota. `uploaded` are the
// bytes of the user's existing uploads and data sets. For Uploads::Allow.
absl::Status CheckUpload(const RpcContext& context, const std::string& user, int64_t uploaded, int64_t added);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_QUOTA_CHECKS_H_
