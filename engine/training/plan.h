#ifndef TANDEM_ENGINE_TRAINING_PLAN_H_
#define TANDEM_ENGINE_TRAINING_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/memory_groups.h"
#include "engine/backend/workspace.h"
#include "engine/data/dataset.h"
#include "engine/tensor/dtype.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The largest number of steps that a device receives at a time.
inline constexpr int kMostStepsPerLaunch = 64;

// The needs of a job, known before any device is opened.
struct JobPlan {
  int64_t parameters = 0;            // Learned numbers of a single replica.
  int64_t steps_per_epoch = 0;       // Optimizer steps. Includes a short last batch unless drop_last.
  int64_t steps = 0;                 // Of all epochs.
  int64_t replica_memory_bytes = 0;  // The most that a replica needs on its device. See kWorkspaceCapBytes.
  MemoryGroups memory;               // The same, by use.
  int64_t resident_bytes = 0;        // The part for samples on the device. 0 if they are on the host.
  int64_t host_memory_bytes = 0;     // On the host, for all replicas: data, their order, a copy to write.
  std::vector<std::string> ops;      // Kinds of op that a device must offer, sorted, without repetition.
};

// Returns the type in which devices with float32 parameters compute the network: float32, bfloat16 or
// float16.
DType ComputeTypeOf(const v1::Training& training);

// Sets each missing field with a default to its default: names of layers and of the job, strides,
// initializers, the optimizer's numbers, metrics, intervals. Wrong fields stay.
void FillDefaults(v1::JobSpec* spec);

// Makes the checks of PlanJob that need no data: model, training and replicas. Errors as PlanJob.
absl::Status CheckJob(const v1::JobSpec& spec);

// Checks a job against its data and plans it: every layer's shape, the loss, the optimizer, the replicas and
// the step graph. Links no backend. The defaults of `spec` may be filled in. Ignores spec.dataset's source.
// INVALID_ARGUMENT with all wrong fields, relative to the JobSpec ("model.layers[3].conv2d.kernel[0]").
//
// Samples are planned on the device if spec.replicas.device_kind is GPU and spec.gpu asks for it. If spec.gpu
// gives no place, they are planned on the device if they fit into its memory_limit_bytes. The caller must
// check that a device has enough memory.
absl::StatusOr<JobPlan> PlanJob(const v1::JobSpec& spec, const DatasetInfo& dataset);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PLAN_H_
