#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_NUMBERS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_NUMBERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/backends/cuda/driver/driver.h"

namespace tandem::cuda {

// Numbers of an op that its kernels read, as float32: shared by a step's `bind`, which fills it, and `run`.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(const std::vector<double>& numbers) : numbers_(numbers.begin(), numbers.end()) {}

  absl::Status Fill(Stream stream);
  // On the device; null where there are none.
  const float* data() const { return reinterpret_cast<const float*>(memory_.data()); }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  const std::vector<float> numbers_;
  DeviceMemory memory_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_NUMBERS_H_
