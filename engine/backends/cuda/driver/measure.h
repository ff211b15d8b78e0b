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

// RESOURCE_EXHAUSTED where so many bytes are more than the options let be taken to measure in.
absl::Status CheckRoom(const LibraryOptions& options, int64_t bytes);

// How many numbers RandomNumbers repeats: no dimension is likely to divide them.
template <typename T>
inline constexpr int64_t kRandomPatternLength = 4 * 65521 / static_cast<int64_t>(sizeof(T));

// These numbers, as the type rounds them.
std::vector<double> RandomPattern(DType type);

// Device memory of so many small random numbers of that type, RandomPattern over and over: zeros would be
// multiplied with less power, hence faster, than what networks hold.
absl::StatusOr<DeviceMemory> RandomNumbers(DType type, int64_t elements, Stream stream);

// The seconds that what `run` puts into the stream takes, replayed as recorded work: launches, which cost
// more than small kernels, do not count. An error of the device comes out here, and one where it cannot be
// recorded.
absl::StatusOr<double> MeasureSeconds(const OwnedStream& stream,
                                      const std::function<absl::Status(Stream)>& run);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_MEASURE_H_
