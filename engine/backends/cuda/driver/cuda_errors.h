#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDA_ERRORS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDA_ERRORS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace tandem::cuda {

// CUDA's description of a failed call. It needs no header of the toolkit.
struct CudaFailure {
  int error = 0;                  // cudaError_t.
  absl::string_view name;         // "cudaErrorIllegalAddress".
  absl::string_view description;  // "an illegal memory access was encountered".
  absl::string_view call;         // "cudaStreamSynchronize".
};

// Returns whether CUDA no longer works in the process after this error: a kernel did something illegal, or
// the GPU, its memory or its connections failed.
bool LeavesProcessUnusable(int error);

// RESOURCE_EXHAUSTED if memory is missing, else INTERNAL. The message begins with "cuda: " if the process is
// unusable.
absl::Status StatusOf(const CudaFailure& failure);

// Returns whether kernels reach a peer's memory, from the result of enabling it. Any error that leaves the
// process usable means no, for example too many peers.
absl::StatusOr<bool> IsPeerReached(const CudaFailure& enabled);

// The system's state if no GPU can be used.
struct CudaSystem {
  int driver_version = 0;   // The newest CUDA of the driver, 13000 for 13.0. 0 without a driver.
  int runtime_version = 0;  // The CUDA of this program.
  absl::optional<absl::string_view> visible_devices;  // CUDA_VISIBLE_DEVICES of the environment.
};

// Returns UNAVAILABLE with the reason and how to mend it. `failure` may be no error: then no GPUs were
// counted.
absl::Status WhyNoGpu(const CudaFailure& failure, const CudaSystem& system);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDA_ERRORS_H_
