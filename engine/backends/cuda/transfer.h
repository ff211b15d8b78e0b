#ifndef TANDEM_ENGINE_BACKENDS_CUDA_TRANSFER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_TRANSFER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/tensor.h"

namespace tandem::cuda {

// Copy between a host tensor and device memory of any layout, with the same type and shape. Both wait for the
// device's stream.
absl::StatusOr<Tensor> ReadTensor(const Layout& layout, const void* data, const DeviceContext& device);
absl::Status WriteTensor(const Tensor& tensor, const Layout& layout, void* data, const DeviceContext& device);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_TRANSFER_H_
