#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_MEASURE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_MEASURE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// RESOURCE_EXHAUSTED if `bytes` is more than the options allow for measuring.
absl::Status CheckRoom(const LibraryOptions& options, int64_t bytes);

// The period of RandomNumbers. No dimension is likely to divide it.
template <typename T>
inline constexpr int64_t kRandomPatternLength = 4 * 65521 / static_cast<int64_t>(sizeof(T));

// Returns a period of these numbers, rounded to the type.
std::vector<double> RandomPattern(DType type);

// Returns device memory with small random numbers of the type, RandomPattern over and over. Zeros would need
// less power and so be faster than the numbers of real networks.
absl::StatusOr<DeviceMemory> RandomNumbers(DType type, int64_t elements, Stream stream);

// Returns the seconds of the work that `run` puts into the stream. The work is recorded and replayed, because
// launches cost more than small kernels. Returns an error of the device, or of work that cannot be recorded.
absl::StatusOr<double> MeasureSeconds(const OwnedStream& stream,
                                      const std::function<absl::Status(Stream)>& run);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_MEASURE_H_
