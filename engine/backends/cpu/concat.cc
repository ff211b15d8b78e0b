#include "engine/backends/cpu/concat.h"

#include <cstring>
#include <utility>

#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/concat.h"

namespace tandem::cpu {
namespace {

// A tensor that is a part of the whole.
struct Part {
  Region region;
  int64_t run = 0;     // Consecutive floats, in the part and in the whole.
  int64_t offset = 0;  // Of the first of these floats in the whole.
};

// A whole cut along an axis: `rows` rows of `stride` floats, each with a run of every part.
struct Cut {
  Lanes lanes;
  int64_t rows = 0;
  int64_t stride = 0;
  int64_t per_index = 0;  // The floats of a row for an index of the axis.
};

Cut CutOf(const Layout& home, const Shape& whole, int axis) {
  Cut cut;
  // Samples that are side by side cannot be cut apart.
  cut.lanes = axis == 0 ? Lanes{.blocks = home.shape()[0], .lanes = 1} : LanesOf(home);
  cut.rows = axis == 0 ? 1 : cut.lanes.blocks * ExtentOf(whole, 1, axis);
  cut.per_index = ExtentOf(whole, axis + 1, whole.rank()) * cut.lanes.lanes;
  cut.stride = whole[axis] * cut.per_index;
  return cut;
}

// Copies the parts to the whole, or back.
void EmitCopies(Lowering& lowering, const char* name, const Cut& cut, std::vector<Part> parts, Region whole,
                bool to_whole) {
  std::vector<Region> regions;
  for (const Part& part : parts) regions.push_back(part.region);
  Step step;
  step.name = name;
  step.reads = to_whole ? regions : std::vector<Region>{whole};
  step.writes = to_whole ? std::vector<Region>{whole} : regions;
  step.run = [cut, parts = std::move(parts), whole, to_whole](const RunContext& run) {
    float* all = run.At<float>(whole);
    run.team->For(cut.rows, [&](int64_t begin, int64_t end) {
      for (const Part& part : parts) {
        float* own = run.At<float>(part.region);
        for (int64_t row = begin; row < end; ++row) {
          float* in_whole = all + row * cut.stride + part.offset;
          float* in_part = own + row * part.run;
          std::memcpy(to_whole ? in_whole : in_part, to_whole ? in_part : in_whole, part.run * sizeof(float));
        }
      }
    });
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
}

}  // namespace

absl::Status LowerConcat(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const int axis = static_cast<const ConcatOp&>(*node.op).axis;
  const Shape& shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Cut cut = CutOf(home.layout, shape, axis);
  std::vector<Part> parts;
  int64_t offset = 0;
  for (const ValueId input : node.inputs) {
    const Shape& part = lowering.shape(input);
    TANDEM_ASSIGN_OR_RETURN(const Region region, lowering.Get(input, cut.lanes.LayoutOf(part)));
    const int64_t run = part[axis] * cut.per_index;
    parts.push_back({region, run, offset});
    offset += run;
  }
  const Region whole = lowering.Define(node.outputs[0], cut.lanes.LayoutOf(shape));
  EmitCopies(lowering, "concat", cut, std::move(parts), whole, /*to_whole=*/true);
  return absl::OkStatus();
}

absl::Status LowerSplit(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const int axis = static_cast<const SplitOp&>(*node.op).axis;
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Cut cut = CutOf(home.layout, shape, axis);
  TANDEM_ASSIGN_OR_RETURN(const Region whole, lowering.Get(node.inputs[0], cut.lanes.LayoutOf(shape)));
  std::vector<Part> parts;
  int64_t offset = 0;
  for (const ValueId output : node.outputs) {
    const Shape& part = lowering.shape(output);
    const int64_t run = part[axis] * cut.per_index;
    parts.push_back({lowering.Define(output, cut.lanes.LayoutOf(part)), run, offset});
    offset += run;
  }
  EmitCopies(lowering, "split", cut, std::move(parts), whole, /*to_whole=*/false);
  return absl::OkStatus();
}

}  // namespace tandem::cpu
