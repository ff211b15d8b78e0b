#ifndef TANDEM_SERVER_RPC_MODEL_TASK_H_
#define TANDEM_SERVER_RPC_MODEL_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/rpc_context.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem::rpc {

// What Predict and Evaluate have in common: the job `name`'s model `artifact`, and where to compute. Reads
// the database. Errors: NOT_FOUND, FAILED_PRECONDITION as the methods.
absl::StatusOr<internal::v1::ModelTask> MakeModelTask(const RpcContext& context, const std::string& name,
                                                      const std::string& artifact);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_MODEL_TASK_H_
