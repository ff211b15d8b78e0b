#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_SUMS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_SUMS_H_

#include <cstdint>

namespace tandem::cuda {

// Sums over rows are made of the sums of at most so many pieces, each of up to three numbers.
inline constexpr int64_t kMostRowSums = 1024;
// The memory for them.
inline constexpr int64_t kRowSumBytes = kMostRowSums * 3 * static_cast<int64_t>(sizeof(double));

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_SUMS_H_
