#include "engine/backends/cpu/lowering.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {

Lowering::Lowering(const Graph& graph, CpuVariables* variables, const Team& team, Algorithms algorithms,
                   DType compute, Products products)
    : LoweringCore(graph, variables,
                   {.before_relu = {"conv2d", "linear"},
                    .norms = {"batch_norm", "batch_norm_inference"},
                    .norm_grads = {"batch_norm_grad"}}),
      team_(team),
      algorithms_(algorithms),
      compute_(compute),
      products_(products) {}

absl::Status Lowering::LowerNode(const Node& node) { return FindLower(node.op->kind())(*this, node); }

absl::StatusOr<Region> Lowering::GetBatchBlocked(ValueId id) {
  return Get(id, Layout::BatchBlocked(value(id).dtype, shape(id)));
}

absl::StatusOr<Region> Lowering::GetFixed(ValueId id, const Layout& layout) {
  TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, layout));
  if (buffers()[region.buffer].source != Buffer::Source::kInput) return region;
  const int64_t bytes = layout.bytes();
  const Region copy = Scratch(bytes);
  Emit({.name = "copy input",
        .reads = {region},
        .writes = {copy},
        .run = [region, copy, bytes](const RunContext& run) {
          std::memcpy(run.At<void>(copy), run.At<void>(region), bytes);
          return absl::OkStatus();
        }});
  // From now on the value's home is the copy.
  Move(id, layout, copy);
  return copy;
}

absl::StatusOr<Region> Lowering::ConvertTiles(ValueId id, const Place& from, const Layout& to) {
  const Layout plain = Layout::Plain(DType::kFloat32, to.shape());
  const bool makes_tiles = to.tiled();
  if (!((makes_tiles ? from.layout : to) == plain)) {
    TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, plain));
    return Convert(id, {region, plain}, to);
  }
  const Region source = from.region;
  const Region target = Scratch(to.bytes());
  const int64_t channels = to.shape()[1];
  const int64_t pixels = to.shape()[2] * to.shape()[3];
  const int64_t items = to.shape()[0] / kTileSamples * TileBlocks(channels);
  Emit({.name = makes_tiles ? "to tiles" : "from tiles",
        .reads = {source},
        .writes = {target},
        .run = [=, tiles = BestTileKernels()](const RunContext& run) {
          run.team->For(items, [&](int64_t begin, int64_t end) {
            if (makes_tiles) {
              tiles->to_tiles(channels, pixels, run.At<const float>(source), run.At<uint16_t>(target), begin,
                              end);
            } else {
              tiles->from_tiles(channels, pixels, run.At<const uint16_t>(source), run.At<float>(target),
                                begin, end);
            }
          });
          return absl::OkStatus();
        }});
  return target;
}

absl::StatusOr<Region> Lowering::Convert(ValueId id, const Place& from, const Layout& to) {
  if (from.layout.tiled() || to.tiled()) return ConvertTiles(id, from, to);
  const Shape& shape = to.shape();
  const bool blocks = from.layout.batch_blocked() || to.batch_blocked();
  const bool other_type = from.layout.dtype() != to.dtype();
  if (blocks && ((!from.layout.plain() && !to.plain()) || other_type)) {
    const Layout plain = Layout::Plain(value(id).dtype, shape);
    TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, plain));
    return Convert(id, {region, plain}, to);
  }
  const bool reorders = to.dtype() == DType::kUInt8 || to.dtype() == DType::kBFloat16;
  if (to.dtype() != DType::kFloat32 && (blocks || !reorders)) {
    return absl::UnimplementedError(
        absl::StrCat("cpu: a change of layout of ", ToString(to.dtype()), shape.ToString()));
  }
  const Region source = from.region;
  if (!blocks) {
    TANDEM_ASSIGN_OR_RETURN(const Region fixed, GetFixed(id, from.layout));
    const Region target = Scratch(to.bytes());
    const dnnl::reorder::primitive_desc desc(OneDnnEngine(), from.layout.desc(), OneDnnEngine(), to.desc());
    Step step = OneDnnStep("reorder", dnnl::reorder(desc), {{DNNL_ARG_FROM, from.layout.desc(), fixed}},
                           {{DNNL_ARG_TO, to.desc(), target}});
    Emit(std::move(step));
    return target;
  }
  const Region target = Scratch(to.bytes());
  const int64_t rows = shape[0];
  const int64_t columns = rows == 0 ? 0 : shape.elements() / rows;
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  const bool block = to.batch_blocked();
  Emit({.name = block ? "block rows" : "unblock rows",
        .reads = {source},
        .writes = {target},
        .run = [=](const RunContext& run) {
          const float* x = run.At<const float>(source);
          float* y = run.At<float>(target);
          run.team->For(row_blocks, [&](int64_t begin, int64_t end) {
            if (block) {
              run.kernels->block_rows(rows, columns, x, y, begin, end);
            } else {
              run.kernels->unblock_rows(rows, columns, x, y, false, begin, end);
            }
          });
          return absl::OkStatus();
        }});
  return target;
}

const Region* Lowering::FindTransformed(ValueId weight) const {
  const auto found = transformed_.find(weight);
  return found == transformed_.end() ? nullptr : &found->second;
}

void Lowering::Changed(ValueId id) {
  transformed_.erase(id);
  LoweringCore::Changed(id);
}

const Region* Lowering::FindSums(NodeId node) const {
  const auto found = sums_.find(node);
  return found == sums_.end() ? nullptr : &found->second;
}

}  // namespace tandem::cpu

namespace tandem {
template class LoweringCore<cpu::CpuBackend>;
}  // namespace tandem
