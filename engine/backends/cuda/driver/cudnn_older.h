#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_OLDER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_OLDER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/cudnn_api.h"
#include "engine/backends/cuda/driver/dnn.h"

namespace tandem::cuda {

// The convolution by cuDNN's calls from before its graphs, which know some problems that no engine of a graph
// does; without bias and ReLU, and by the algorithm that cuDNN thinks the fastest. UNIMPLEMENTED
// where there is none that needs at most `workspace_cap` bytes.
absl::StatusOr<std::unique_ptr<Convolution>> PlanOlderConvolution(std::shared_ptr<CudnnHandle> handle,
                                                                  const ConvolutionSpec& spec,
                                                                  const LibraryOptions& options,
                                                                  int64_t workspace_cap);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_OLDER_H_
