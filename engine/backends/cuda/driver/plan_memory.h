#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_PLAN_MEMORY_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_PLAN_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/backend/algorithm_memory.h"

namespace tandem::cuda {

// Returns the libraries' measured algorithms, in the file that TANDEM_CUDA_PLANS in the environment names.
// Problems include the library's version and the GPU's name.
AlgorithmMemory& RememberedPlans();

// Returns the name of the thread's device.
absl::StatusOr<std::string> NameOfGpu();

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_PLAN_MEMORY_H_
