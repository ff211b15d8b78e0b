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

// RESOURCE_EXHAUSTED if `added` more jobs exceed the queue's limit. Several jobs count as a sweep. The error
// has a retry delay if the jobs may fit later. The transaction that creates the jobs checks again; this check
// saves work.
absl::Status CheckQueueLength(const RpcContext& context, int64_t added = 1);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_QUOTA_CHECKS_H_
