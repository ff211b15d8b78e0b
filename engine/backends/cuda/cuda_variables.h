#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_VARIABLES_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "engine/backend/lowering/laid_out_variables.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/layout.h"
#include "engine/backends/cuda/memory_budget.h"

namespace tandem::cuda {

class CudaVariables final : public LaidOutVariables<Layout, BudgetedMemory> {
 public:
  CudaVariables(std::shared_ptr<DeviceContext> device, const Variables* like)
      : LaidOutVariables(like, device), device_(std::move(device)) {}

 private:
  absl::StatusOr<BudgetedMemory> Allocate(const std::string& name, VariableKind kind, int64_t bytes) override;
  absl::StatusOr<Tensor> ReadMemory(const Layout& layout, const std::byte* data) const override;
  absl::Status WriteMemory(const Tensor& value, const Layout& layout, std::byte* data) override;
  absl::Status ClearMemory(std::byte* data, int64_t bytes) override;

  const std::shared_ptr<DeviceContext> device_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_VARIABLES_H_
