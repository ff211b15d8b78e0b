#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_UNSCALE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_UNSCALE_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/tensor_changes.h"

namespace tandem::cuda {

// The rule of a loss's scale. See graph/ops/unscale_gradients.h.
struct LossScaleRule {
  double growth_factor = 0;
  double backoff_factor = 0;
  int64_t growth_interval = 0;
  double least = 0;
  double most = 0;
};

// The state of unscale_gradients besides the gradients, on the device.
struct LossScaleState {
  float* scale = nullptr;
  double* good = nullptr;
  double* skipped = nullptr;
  double* meter = nullptr;
  const int64_t* step = nullptr;
  double* apply = nullptr;
  int64_t* taken = nullptr;
};

// unscale_gradients: y = x / scale for all tensors of a table. Targets are y, sources x, and may be the same
// memory. `scratch` is memory of UnscaleScratchBytes.
void UnscaleTensors(const ChangeTable& table, const LossScaleRule& rule, const LossScaleState& state,
                    void* scratch, Stream stream);
inline int64_t UnscaleScratchBytes(int64_t pieces) { return pieces * static_cast<int64_t>(sizeof(int)); }

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_UNSCALE_H_
