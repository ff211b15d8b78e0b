#include "engine/backends/cpu/dropout.h"

#include <algorithm>
#include <array>

#include "absl/container/inlined_vector.h"
#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/dropout.h"

namespace tandem::cpu {
namespace {

// Drops elements of a block of samples side by side, with `elements` elements each.
void DropBlock(const DropoutOp& op, int64_t step, const Lanes& lanes, int64_t block, int64_t elements,
               const float* x, float* y) {
  const uint64_t threshold = op.threshold();
  const float scale = static_cast<float>(op.scale());
  absl::InlinedVector<RandomStream, kBlock> streams;
  for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
    streams.emplace_back(op.WordsOf(step, block * lanes.lanes + lane));
  }
  for (int64_t first = 0; first < elements; first += 4) {
    const int64_t count = std::min<int64_t>(4, elements - first);
    for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
      const std::array<uint32_t, 4> words = streams[lane].NextBlock();
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = (first + k) * lanes.lanes + lane;
        y[i] = words[k] >= threshold ? x[i] * scale : 0.0f;
      }
    }
  }
}

}  // namespace

absl::Status LowerDropout(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Lanes lanes = LanesOf(home.layout);
  const Layout layout = lanes.LayoutOf(shape);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], layout));
  TANDEM_ASSIGN_OR_RETURN(const Region step, lowering.GetPlain(node.inputs[1]));
  const Region y = lowering.Define(node.outputs[0], layout);
  const int64_t elements = ExtentOf(shape, 1, shape.rank());
  lowering.Emit({.name = "dropout",
                 .reads = {x, step},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=, op = static_cast<const DropoutOp&>(*node.op)](const RunContext& run) {
                   run.team->For(lanes.blocks, [&](int64_t begin, int64_t end) {
                     for (int64_t block = begin; block < end; ++block) {
                       const int64_t first = block * elements * lanes.lanes;
                       DropBlock(op, *run.At<const int64_t>(step), lanes, block, elements,
                                 run.At<const float>(x) + first, run.At<float>(y) + first);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
