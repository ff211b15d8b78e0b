#ifndef TANDEM_SERVER_WORKER_MODEL_RUN_H_
#define TANDEM_SERVER_WORKER_MODEL_RUN_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "engine/training/trainer.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// Accepts an output of a model task. An error ends the task.
using WriteOutput = std::function<absl::Status(const internal::v1::ModelTaskOutput& output)>;

// Performs a model task and writes its outputs. The last output tells how the task ended. Errors are those of
// `write`.
absl::Status RunModelTask(const internal::v1::ModelTask& task, const DeviceFactory& device_factory,
                          const WriteOutput& write);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_MODEL_RUN_H_
