#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDA_ERRORS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDA_ERRORS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace tandem::cuda {

// What CUDA says of a call that failed; it needs nothing of the toolkit's.
struct CudaFailure {
  int error = 0;                  // cudaError_t.
  absl::string_view name;         // "cudaErrorIllegalAddress".
  absl::string_view description;  // "an illegal memory access was encountered".
  absl::string_view call;         // "cudaStreamSynchronize".
};

// Whether after this error nothing of CUDA's works any more in the process: a kernel did something illegal,
// or the GPU, its memory or its connections failed.
bool LeavesProcessUnusable(int error);

// RESOURCE_EXHAUSTED for no memory. INTERNAL for others: "cuda: ..." where it leaves the process unusable.
absl::Status StatusOf(const CudaFailure& failure);

// Whether kernels reach a peer's memory, by what asking for that came to. An error, but for one after which
// nothing works, means that they do not: too many peers are reached already, say.
absl::StatusOr<bool> IsPeerReached(const CudaFailure& enabled);

// What is to be known where no GPU can be had.
struct CudaSystem {
  int driver_version = 0;   // The newest CUDA that the driver runs, 13000 for 13.0; 0: there is no driver.
  int runtime_version = 0;  // The CUDA of this program.
  absl::optional<absl::string_view> visible_devices;  // The environment's CUDA_VISIBLE_DEVICES.
};

// UNAVAILABLE: why there is no GPU, and what mends it. `failure` may be of none: no GPUs were counted.
absl::Status WhyNoGpu(const CudaFailure& failure, const CudaSystem& system);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDA_ERRORS_H_
