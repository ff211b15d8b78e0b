#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_OLDER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_OLDER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/cudnn_api.h"
#include "engine/backends/cuda/driver/dnn.h"

namespace tandem::cuda {

// Plans a convolution by cuDNN's older API, which supports some problems without a graph engine. It has no
// bias and no ReLU. The algorithm is cuDNN's best guess. UNIMPLEMENTED if no algorithm needs at most
// `workspace_cap` bytes.
absl::StatusOr<std::unique_ptr<Convolution>> PlanOlderConvolution(std::shared_ptr<CudnnHandle> handle,
                                                                  const ConvolutionSpec& spec,
                                                                  const LibraryOptions& options,
                                                                  int64_t workspace_cap);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_OLDER_H_
