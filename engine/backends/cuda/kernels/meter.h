#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_METER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_METER_H_

#include <cstdint>

namespace tandem::cuda {

// Terms that are added to a meter: sums[i] += weights[i] * values[i]. The memory is on the device. A kernel
// takes the struct by value.
struct MeterTerms {
  static constexpr int kMost = 8;

  int count = 0;
  double* sums = nullptr;
  const void* values[kMost] = {};  // float64 if `is_wide`, else float32.
  bool is_wide[kMost] = {};
  double weights[kMost] = {};
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_METER_H_
