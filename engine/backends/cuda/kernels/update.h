#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_UPDATE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_UPDATE_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/tensor_changes.h"

namespace tandem::cuda {

// Changes of all tensors of a table. y are targets, x sources.

// y = scale x. The target may be the source.
void ScaleTensors(const ChangeTable& table, float scale, Stream stream);
// y += scale x.
void AddTensors(const ChangeTable& table, float scale, Stream stream);
// y += (1 - d) (x - y), with d = min(decay, (1 + step) / (10 + step)). `step` is on the device.
void AverageTensors(const ChangeTable& table, double decay, const int64_t* step, Stream stream);
// y = x clamped to [-limit, limit].
void ClampTensors(const ChangeTable& table, float limit, Stream stream);
// y = x min(1, limit / (n + epsilon)), where n is the 2-norm of all x. `scratch` is memory of
// ClipScratchBytes.
void ClipTensors(const ChangeTable& table, double limit, double epsilon, void* scratch, Stream stream);
inline int64_t ClipScratchBytes(int64_t pieces) {
  return (1 + pieces) * static_cast<int64_t>(sizeof(double));
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_UPDATE_H_
