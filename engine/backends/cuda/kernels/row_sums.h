#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_SUMS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_SUMS_H_

#include <cstdint>

namespace tandem::cuda {

// The largest number of pieces in sums over rows. A piece has up to three numbers.
inline constexpr int64_t kMostRowSums = 1024;
// The bytes of their memory.
inline constexpr int64_t kRowSumBytes = kMostRowSums * 3 * static_cast<int64_t>(sizeof(double));

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_SUMS_H_
