#ifndef TANDEM_SERVER_WORKER_MODEL_RUN_H_
#define TANDEM_SERVER_WORKER_MODEL_RUN_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "engine/training/trainer.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {

// Accepts an output of a model task. An error ends the task.
using WriteOutput = std::function<absl::Status(const internal::v1::ModelTaskOutput& output)>;

// Performs model tasks, one after another. After a prediction, keeps the model and its executables for the
// next prediction with the same model. Not thread-safe.
class ModelRun {
 public:
  explicit ModelRun(DeviceFactory device_factory);
  ~ModelRun();
  ModelRun(const ModelRun&) = delete;
  ModelRun& operator=(const ModelRun&) = delete;

  // Performs a task and writes its outputs. The last output tells how the task ended. Errors are those of
  // `write`.
  absl::Status Perform(const internal::v1::ModelTask& task, const WriteOutput& write);

 private:
  struct LoadedModel;

  absl::Status Run(const internal::v1::ModelTask& task, const WriteOutput& write);
  // Returns the task's model: the kept one if the task names the same file by its checksum.
  absl::StatusOr<LoadedModel*> Load(const internal::v1::ModelTask& task);

  const DeviceFactory device_factory_;
  std::unique_ptr<LoadedModel> loaded_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_MODEL_RUN_H_
