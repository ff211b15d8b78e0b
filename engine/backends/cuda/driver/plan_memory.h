#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_PLAN_MEMORY_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_PLAN_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/backend/algorithm_memory.h"

namespace tandem::cuda {

// Returns the memory of measured algorithms of NVIDIA's libraries, in the file that the environment variable
// TANDEM_CUDA_PLANS names. Keys must include the library's version and the GPU's name.
AlgorithmMemory& RememberedPlans();

// Returns the name of the thread's device.
absl::StatusOr<std::string> NameOfGpu();

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_PLAN_MEMORY_H_
