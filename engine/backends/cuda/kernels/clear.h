#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLEAR_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLEAR_H_

#include "absl/types/span.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// Sets the ranges to zero, up to 64 of them in a launch. On an H200, a clear by the driver delays the next
// kernel of a CUDA graph by 6 us.
void ClearMemory(absl::Span<const MemoryRange> ranges, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLEAR_H_
