#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_TABLE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {

// Numbers that are known when a step is lowered and that its kernels read in every run. They are on the
// device after Upload, which the step's `bind` calls. The step's functions share the table.
template <typename T>
class DeviceTable {
 public:
  explicit DeviceTable(std::vector<T> numbers) : numbers_(std::move(numbers)) {}
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  absl::Status Upload(Stream stream) {
    if (numbers_.empty()) return absl::OkStatus();
    const auto bytes = static_cast<int64_t>(numbers_.size() * sizeof(T));
    TANDEM_ASSIGN_OR_RETURN(memory_, DeviceMemory::Allocate(bytes));
    return Copy(memory_.data(), numbers_.data(), bytes, stream);
  }
  // Returns null if the table is empty.
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  const std::vector<T> numbers_;
  DeviceMemory memory_;
};

// Returns the numbers of an op as a table of float32.
inline std::shared_ptr<DeviceTable<float>> FloatTable(const std::vector<double>& numbers) {
  return std::make_shared<DeviceTable<float>>(std::vector<float>(numbers.begin(), numbers.end()));
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_TABLE_H_
