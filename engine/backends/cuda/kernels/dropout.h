#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_DROPOUT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_DROPOUT_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// The elements that stay, as in graph/ops/dropout.h.
struct DropoutRule {
  ChannelSizes sizes;
  bool channels_last = false;
  uint64_t seed = 0;
  uint8_t purpose = 0;
  int64_t first_sample = 0;
  int step_bits = 0;       // The bits of the step. Higher bits are added to first_sample.
  uint64_t threshold = 0;  // The least word of an element that stays.
  float scale = 1;
};

// x and y have `type`, float32, bfloat16 or float16, and the same layout. y may be x. `step` is on the
// device.
void Dropout(const DropoutRule& rule, DType type, const int64_t* step, const void* x, void* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_DROPOUT_H_
