#ifndef TANDEM_SERVER_RPC_JOB_REQUEST_H_
#define TANDEM_SERVER_RPC_JOB_REQUEST_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/auth/token_registry.h"
#include "server/rpc/rpc_context.h"
#include "tandem/v1/job.pb.h"

// What requests that make jobs have in common.

namespace tandem::rpc {

// The largest spec of a job: far above any network that is written by hand, far below what would burden the
// store.
inline constexpr size_t kMaxSpecBytes = 1 << 20;

// INVALID_ARGUMENT for the field "request_id".
absl::Status CheckRequestId(const std::string& id);

// Checks a job whole, with its data at hand: its spec, its priority, and whether it could ever run for the
// caller. It reads the data's files. Fields at fault begin with "spec.". The job has no request id, and no
// submitted spec.
absl::StatusOr<JobMachine::NewJob> AdmitJob(const RpcContext& context, const Caller& caller,
                                            const v1::JobSpec& spec);

// What is wrong with a job but for its data, which is not here yet: nobody should wait for data to hear of
// a misspelt layer.
absl::Status CheckWithoutData(const RpcContext& context, const v1::JobSpec& spec);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_JOB_REQUEST_H_
