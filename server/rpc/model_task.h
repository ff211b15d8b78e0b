#ifndef TANDEM_SERVER_RPC_MODEL_TASK_H_
#define TANDEM_SERVER_RPC_MODEL_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/rpc_context.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem::rpc {

// The common part of Predict and Evaluate: the model `artifact` of the job `name`, and the device. Reads the
// database. NOT_FOUND and FAILED_PRECONDITION as the methods.
absl::StatusOr<internal::v1::ModelTask> MakeModelTask(const RpcContext& context, const std::string& name,
                                                      const std::string& artifact);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_MODEL_TASK_H_
