#include "engine/backends/cuda/driver/plan_memory.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {

AlgorithmMemory& RememberedPlans() {
  static AlgorithmMemory& remembered = *AlgorithmMemory::InFileOf("TANDEM_CUDA_PLANS").release();
  return remembered;
}

absl::StatusOr<std::string> NameOfGpu() {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    return absl::InternalError(
        absl::StrCat("a call of CUDA failed: cudaGetDevice: ", cudaGetErrorString(error)));
  }
  TANDEM_ASSIGN_OR_RETURN(const DeviceProperties properties, GetProperties(device));
  return properties.name;
}

}  // namespace tandem::cuda
