#include "engine/training/trainer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"
#include "engine/training/worker_trainer.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Options options) {
  v1::DatasetSpec submitted = options.spec.dataset();
  *options.spec.mutable_dataset() = options.dataset;
  FillDefaults(&options.spec);
  TANDEM_RETURN_IF_ERROR(CheckJob(options.spec));
  if (const size_t replicas = LoadsOf(options.spec.replicas()).size(); replicas != options.devices.size()) {
    return FieldError("replicas.count", absl::StrCat("asks for ", replicas, " that compute, but ",
                                                     options.devices.size(), " devices were given"));
  }
  const TrainerGroup& group = options.group;
  if (group.workers < 1 || group.worker < 0 || group.worker >= group.workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", group.worker, " is not one of ", group.workers));
  }
  if (options.devices.size() % group.workers != 0) {
    return FieldError("replicas.workers",
                      absl::StrCat("there are ", group.workers, " workers for ", options.devices.size(),
                                   " replicas, which they cannot share equally"));
  }
  if (group.workers > 1 && group.connect == nullptr) {
    return absl::InvalidArgumentError("several workers need a way to connect");
  }
  if (options.device_factory == nullptr) return absl::InvalidArgumentError("a device factory is needed");
  return std::make_unique<WorkerTrainer>(std::move(options), std::move(submitted));
}

}  // namespace tandem
