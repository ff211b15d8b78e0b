#ifndef TANDEM_ENGINE_BACKENDS_CPU_CPU_VARIABLES_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CPU_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/backend/lowering/laid_out_variables.h"
#include "engine/backends/cpu/layout.h"
#include "engine/backends/cpu/memory.h"

namespace tandem::cpu {

class CpuVariables final : public LaidOutVariables<Layout, Memory> {
 public:
  using LaidOutVariables::LaidOutVariables;

  // The bytes that the executables of these variables take beyond their graphs' plans. Each executable adds
  // its bytes, and subtracts them in its destructor.
  const std::shared_ptr<int64_t>& workspace_bytes() const { return workspace_bytes_; }

 private:
  absl::StatusOr<Memory> Allocate(const std::string& name, VariableKind kind, int64_t bytes) override;
  absl::StatusOr<Tensor> ReadMemory(const Layout& layout, const std::byte* data) const override;
  absl::Status WriteMemory(const Tensor& value, const Layout& layout, std::byte* data) override;
  absl::Status ClearMemory(std::byte* data, int64_t bytes) override;

  const std::shared_ptr<int64_t> workspace_bytes_ = std::make_shared<int64_t>(0);
};

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CPU_VARIABLES_H_
