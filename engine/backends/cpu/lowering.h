#ifndef TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/lowering/lowering_core.h"
#include "engine/backend/lowering/step.h"
#include "engine/backends/cpu/cpu_variables.h"
#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/layout.h"
#include "engine/backends/cpu/memory.h"
#include "engine/backends/cpu/team.h"
#include "engine/graph/graph.h"

namespace tandem::cpu {

// The objects that a step computes with.
struct RunContext : RunMemory {
  const Team* team = nullptr;
  const Kernels* kernels = nullptr;
};

// See LoweringCore.
struct CpuBackend {
  using Layout = cpu::Layout;
  using Memory = cpu::Memory;
  using RunContext = cpu::RunContext;
  static constexpr absl::string_view kName = "cpu";
  static constexpr int64_t kAlignment = 64;
};
using Place = PlaceOf<Layout>;
using Step = StepOf<RunContext>;

// From the fastest to the least memory.
enum class Algorithms : uint8_t {
  kFastest,
  kSmallScratch,     // No oneDNN algorithm with more scratch than kSmallScratchBytes.
  kWithoutWinograd,  // Winograd's scratch grows with channels and threads.
  kOneDnn,           // No batch-blocked layout, which pads batches, and no tiled layout, which pads channels.
};

// The code for matrix products in bfloat16. See TakesTileProducts.
enum class Products : uint8_t {
  kFaster,  // For each product, the faster of the two by a measurement.
  kTiles,   // Own tiles, wherever they can. For measurements.
  kOthers,  // oneDNN and batch-blocked loops. For measurements.
};

inline constexpr int64_t kSmallScratchBytes = int64_t{32} << 20;

// Adds the steps of each op, and chooses its algorithm and layouts. A float32 value may be computed in
// bfloat16.
class Lowering final : public LoweringCore<CpuBackend> {
 public:
  // `compute` is float32, or bfloat16 to compute and keep large values in bfloat16.
  Lowering(const Graph& graph, CpuVariables* variables, const Team& team, Algorithms algorithms,
           DType compute, Products products = Products::kFaster);

  Products products() const { return products_; }
  Algorithms algorithms() const { return algorithms_; }
  DType compute() const { return compute_; }
  const Team& team() const { return team_; }

  // As Get, in the batch-blocked layout.
  absl::StatusOr<Region> GetBatchBlocked(ValueId id);
  // As Get, but never the memory of an input, whose address changes from run to run.
  absl::StatusOr<Region> GetFixed(ValueId id, const Layout& layout) override;

  // Returns the result that an earlier node computed from a weight, if later nodes may reuse it. Null if
  // there is none, or if the weight has changed.
  const Region* FindTransformed(ValueId weight) const;
  void SetTransformed(ValueId weight, Region region) { transformed_[weight] = region; }
  // Returns the sums that an earlier node computed for `node`, or null.
  const Region* FindSums(NodeId node) const;
  void SetSums(NodeId node, Region region) { sums_[node] = region; }
  void Changed(ValueId id) override;

 private:
  absl::Status LowerNode(const Node& node) override;
  absl::StatusOr<Region> Convert(ValueId id, const Place& from, const Layout& to) override;
  absl::StatusOr<Region> ConvertTiles(ValueId id, const Place& from, const Layout& to);

  const Team team_;
  const Algorithms algorithms_;
  const DType compute_;
  const Products products_;
  std::map<ValueId, Region> transformed_;  // By weight.
  std::map<NodeId, Region> sums_;          // By node.
};

// Adds the steps of a node.
using Lower = absl::Status (*)(Lowering& lowering, const Node& node);
// Returns null if the backend does not offer the op.
Lower FindLower(absl::string_view kind);

}  // namespace tandem::cpu

namespace tandem {
extern template class LoweringCore<cpu::CpuBackend>;
}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_
