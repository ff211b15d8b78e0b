#include "engine/backends/cuda/cuda_variables.h"

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {

absl::StatusOr<BudgetedMemory> CudaVariables::Allocate(const std::string& name, VariableKind kind,
                                                       int64_t bytes) {
  absl::StatusOr<BudgetedMemory> memory = device_->memory.Allocate(MemoryGroups::GroupOf(kind), bytes);
  if (!memory.ok()) {
    return absl::Status(memory.status().code(),
                        absl::StrCat("variable \"", name, "\": ", memory.status().message()));
  }
  TANDEM_RETURN_IF_ERROR(Zero(memory->data(), memory->bytes(), device_->stream->get()));
  return memory;
}

absl::StatusOr<Tensor> CudaVariables::ReadMemory(const Layout& layout, const std::byte* data) const {
  return ReadTensor(layout, data, *device_);
}

absl::Status CudaVariables::WriteMemory(const Tensor& value, const Layout& layout, std::byte* data) {
  return WriteTensor(value, layout, data, *device_);
}

absl::Status CudaVariables::ClearMemory(std::byte* data, int64_t bytes) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  return Zero(data, bytes, device_->stream->get());
}

}  // namespace tandem::cuda
