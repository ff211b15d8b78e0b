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

// Steps that are given to a device at a time, at most.
inline constexpr int kMostStepsPerLaunch = 64;

// What a job will take, known before any device is opened.
struct JobPlan {
  int64_t parameters = 0;            // Learned numbers of one replica.
  int64_t steps_per_epoch = 0;       // Optimizer steps, a last short batch included but with drop_last.
  int64_t steps = 0;                 // Of all epochs.
  int64_t replica_memory_bytes = 0;  // The most that a replica needs on its device; see kWorkspaceCapBytes.
  MemoryGroups memory;               // What it is for.
  int64_t resident_bytes = 0;  // Of those: of samples that lie on the device; 0 where they are on the host.
  int64_t host_memory_bytes = 0;  // Of all replicas together, on the host: data, its order, a copy to write.
  std::vector<std::string> ops;   // Kinds of op that a device must offer, sorted, each once.
};

// The type in which devices that keep float32 parameters compute the network: float32, bfloat16 or
// float16.
DType ComputeTypeOf(const v1::Training& training);

// Sets every field that has a default and that `spec` leaves out to that default: names of layers and of the
// job, strides, initializers, the optimizer's numbers, metrics, intervals. What is wrong stays as it is.
void FillDefaults(v1::JobSpec* spec);

// The part of PlanJob's checks that needs no data: the model, the training and the replicas for themselves.
// The errors are PlanJob's.
absl::Status CheckJob(const v1::JobSpec& spec);

// Checks a job as a whole against its data and plans it: every layer's shape, the loss, the optimizer, the
// replicas, and the step graph. Links no backend. `spec` may have its defaults filled in or not.
// INVALID_ARGUMENT with all fields at fault, relative to the JobSpec ("model.layers[3].conv2d.kernel[0]").
// spec.dataset's source is not looked at. Samples lie on the device where spec.replicas.device_kind is GPU
// and spec.gpu has them there, or says nothing and they fit below its memory_limit_bytes; whether a device
// has so much is for the caller to see.
absl::StatusOr<JobPlan> PlanJob(const v1::JobSpec& spec, const DatasetInfo& dataset);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PLAN_H_
