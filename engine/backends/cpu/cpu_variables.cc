#include "engine/backends/cpu/cpu_variables.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/backends/cpu/transfer.h"

namespace tandem::cpu {

absl::StatusOr<Memory> CpuVariables::Allocate(const std::string& name, VariableKind /*kind*/, int64_t bytes) {
  Memory memory = Memory::Allocate(bytes);
  if (memory.data() != nullptr) return memory;
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for variable \"", name, "\" of ", bytes, " bytes"));
}

absl::StatusOr<Tensor> CpuVariables::ReadMemory(const Layout& layout, const std::byte* data) const {
  return ToTensor(layout, data);
}

absl::Status CpuVariables::WriteMemory(const Tensor& value, const Layout& layout, std::byte* data) {
  return FromTensor(value, layout, data);
}

absl::Status CpuVariables::ClearMemory(std::byte* data, int64_t bytes) {
  std::memset(data, 0, bytes);
  return absl::OkStatus();
}

}  // namespace tandem::cpu
