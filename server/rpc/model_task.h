#ifndef TANDEM_SERVER_RPC_MODEL_TASK_H_
#define TANDEM_SERVER_RPC_MODEL_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/jobs/job_machine.h"
#include "server/scheduler/scheduler.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem::rpc {

// The common part of Predict and Evaluate: the model `artifact` of the job `name`, and the device. Reads the
// database. NOT_FOUND and FAILED_PRECONDITION as the methods.
absl::StatusOr<internal::v1::ModelTask> MakeModelTask(const std::string& name, const std::string& artifact,
                                                      JobMachine* jobs, const Scheduler* scheduler);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_MODEL_TASK_H_
