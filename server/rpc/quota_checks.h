#ifndef TANDEM_SERVER_RPC_QUOTA_CHECKS_H_
#define TANDEM_SERVER_RPC_QUOTA_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/rpc/rpc_context.h"

// Limits that are asked about before something new is made; LIMITS.md has all of them.

namespace tandem::rpc {

// RESOURCE_EXHAUSTED where the user's jobs, uploads and data sets take as much of the disk as the user may
// have.
absl::Status CheckDiskUse(const RpcContext& context, const std::string& user);

// RESOURCE_EXHAUSTED where they would take more with an upload of so many bytes, beside `uploaded` bytes of
// uploads and data sets that there are. Uploads::Allow.
absl::Status CheckUpload(const RpcContext& context, const std::string& user, int64_t uploaded, int64_t added);

// RESOURCE_EXHAUSTED where more jobs would wait than the daemon keeps with so many more, which are a sweep's
// where they are several; with a retry delay where that may change by waiting.
// What is made is counted once more in its transaction: this saves the work before.
absl::Status CheckQueueLength(const RpcContext& context, int64_t added = 1);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_QUOTA_CHECKS_H_
