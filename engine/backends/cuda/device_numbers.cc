#include "engine/backends/cuda/device_numbers.h"

#include "engine/base/status_macros.h"

namespace tandem::cuda {

absl::Status DeviceNumbers::Fill(Stream stream) {
  if (numbers_.empty()) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(numbers_.size() * sizeof(float));
  TANDEM_ASSIGN_OR_RETURN(memory_, DeviceMemory::Allocate(bytes));
  return Copy(memory_.data(), numbers_.data(), bytes, stream);
}

}  // namespace tandem::cuda
