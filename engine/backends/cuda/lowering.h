#ifndef TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/lowering/lowering_core.h"
#include "engine/backend/lowering/step.h"
#include "engine/backends/cuda/cuda_variables.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/layout.h"
#include "engine/backends/cuda/memory_budget.h"
#include "engine/graph/graph.h"

namespace tandem::cuda {

class Narrowing;

// The objects that a step computes with.
struct RunContext : RunMemory {
  Stream stream = nullptr;
};

// See LoweringCore.
struct CudaBackend {
  using Layout = cuda::Layout;
  using Memory = BudgetedMemory;
  using RunContext = cuda::RunContext;
  static constexpr absl::string_view kName = "cuda";
  static constexpr int64_t kAlignment = 256;
};
using Place = PlaceOf<Layout>;
using Step = StepOf<RunContext>;

// Adds the steps of each op, and chooses its algorithm and layouts. Float32 values between layers may have
// the compute type, float32 or narrow. Parameters, their gradients at the update, statistics, losses and
// meters have the graph's types.
class Lowering final : public LoweringCore<CudaBackend> {
 public:
  Lowering(const Graph& graph, CudaVariables* variables, DeviceContext* device);

  DeviceContext& device() const { return *device_; }
  // Returns the type of values between layers and of products.
  DType compute() const { return device_->options.compute; }
  // Returns the bytes that a step's algorithm may use besides its tensors. See engine/backend/workspace.h.
  int64_t workspace_cap() const { return workspace_cap_; }
  // Returns the most bytes of an arena that keeps this limit: the planned tensors and the workspace.
  int64_t arena_cap() const { return planned_bytes_ + workspace_cap_; }

  // As Get, plain and in the compute type if the value is float32.
  absl::StatusOr<Region> GetPlainCompute(ValueId id);
  // As Scratch, zero before the first run. Later runs find the data of the step's earlier runs.
  Region KeptZeros(int64_t bytes);
  void Changed(ValueId id) override;

 private:
  absl::Status LowerNode(const Node& node) override;
  absl::StatusOr<Region> Convert(ValueId id, const Place& from, const Layout& to) override;
  Region Narrow(const Place& from, const Layout& to);

  DeviceContext* const device_;
  const int64_t planned_bytes_;
  const int64_t workspace_cap_;
  std::vector<bool> changed_;             // By value.
  std::shared_ptr<Narrowing> narrowing_;  // Of variables. Null before the first.
  size_t narrowing_step_ = 0;             // The position of its step.
};

// Adds the steps of a node.
using Lower = absl::Status (*)(Lowering& lowering, const Node& node);
// Returns null if the backend does not offer the op.
Lower FindLower(absl::string_view kind);

}  // namespace tandem::cuda

namespace tandem {
extern template class LoweringCore<cuda::CudaBackend>;
}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_
