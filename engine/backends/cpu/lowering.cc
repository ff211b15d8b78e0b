#include "engine/backends/cpu/lowering.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/update.h"

namespace tandem::cpu {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Lowering::Lowering(const Graph& graph, CpuVariables* variables, const Team& team, Algorithms algorithms,
                   DType compute, Products products)
    : graph_(graph),
      variables_(variables),
      team_(team),
      algorithms_(algorithms),
      compute_(compute),
      products_(products),
      readers_(graph.values().size()),
      is_output_(graph.values().size(), false),
      absorbed_(graph.nodes().size(), false),
      places_(graph.values().size()) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      std::vector<NodeId>& readers = readers_[input];
      if (readers.empty() || readers.back() != node.id) readers.push_back(node.id);
    }
  }
  for (const ValueId output : graph.outputs()) is_output_[output] = true;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& input = graph.value(graph.inputs()[i]);
    const int buffer = AddBuffer({.source = Buffer::Source::kInput, .input = static_cast<int>(i)});
    places_[input.id].push_back({{buffer, 0}, Layout::Plain(input.dtype, input.shape)});
  }
  for (const Value& value : graph.values()) {
    if (value.role != ValueRole::kConstant) continue;
    const Layout layout = Layout::Plain(value.dtype, value.shape);
    const int buffer = AddBuffer({.source = Buffer::Source::kConstant,
                                  .bytes = layout.bytes(),
                                  .constant = value.constant,
                                  .dtype = value.dtype});
    places_[value.id].push_back({{buffer, 0}, layout});
  }
}

int Lowering::AddBuffer(Buffer buffer) {
  buffers_.push_back(buffer);
  return static_cast<int>(buffers_.size()) - 1;
}

absl::StatusOr<Place> Lowering::Home(ValueId id) {
  TANDEM_ASSIGN_OR_RETURN(const Place home, HomeAsMade(id));
  if (home.layout.dtype() == value(id).dtype) return home;
  const Layout layout = home.layout.WithType(value(id).dtype);
  TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, layout));
  return Place{region, layout};
}

absl::StatusOr<Place> Lowering::HomeAsMade(ValueId id) {
  const Value& value = graph_.value(id);
  if (places_[id].empty()) {
    if (value.role != ValueRole::kVariable) {
      return absl::InternalError(
          absl::StrCat("value ", id, " \"", value.name, "\" is read before it is made"));
    }
    TANDEM_RETURN_IF_ERROR(Get(id, Layout::Plain(value.dtype, value.shape)).status());
  }
  return places_[id].front();
}

absl::Status Lowering::SettleVariable(ValueId id, const Layout& layout) {
  const Value& value = graph_.value(id);
  if (!places_[id].empty() || value.role != ValueRole::kVariable) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const Layout settled, variables_->Settle(value.name, layout.WithType(value.dtype)));
  const int buffer = AddBuffer({.source = Buffer::Source::kVariable,
                                .bytes = settled.bytes(),
                                .memory = static_cast<std::byte*>(variables_->data(value.name))});
  places_[id].push_back({{buffer, 0}, settled});
  return absl::OkStatus();
}

absl::StatusOr<Region> Lowering::Get(ValueId id, const Layout& layout) {
  TANDEM_RETURN_IF_ERROR(SettleVariable(id, layout));
  for (const Place& place : places_[id]) {
    if (place.layout == layout) return place.region;
  }
  TANDEM_ASSIGN_OR_RETURN(const Place home, HomeAsMade(id));
  TANDEM_ASSIGN_OR_RETURN(const Region region, Convert(id, home, layout));
  places_[id].push_back({region, layout});
  return region;
}

absl::StatusOr<Region> Lowering::GetPlain(ValueId id) {
  return Get(id, Layout::Plain(value(id).dtype, shape(id)));
}

absl::StatusOr<Region> Lowering::GetBatchBlocked(ValueId id) {
  return Get(id, Layout::BatchBlocked(value(id).dtype, shape(id)));
}

absl::StatusOr<Region> Lowering::GetFixed(ValueId id, const Layout& layout) {
  TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, layout));
  if (buffers_[region.buffer].source != Buffer::Source::kInput) return region;
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
  std::vector<Place>& places = places_[id];
  for (Place& place : places) {
    if (place.layout == layout) place.region = copy;
  }
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

Region Lowering::Define(ValueId id, const Layout& layout) {
  Region region;
  if (const Node* reduction = OnlyReader(id, "all_reduce"); reduction != nullptr) {
    const size_t i =
        std::find(reduction->inputs.begin(), reduction->inputs.end(), id) - reduction->inputs.begin();
    const absl::StatusOr<Place> slot = BucketSlot(*reduction, i);
    // Without a slot, the reduction reports the error.
    if (slot.ok() && slot->layout == layout) region = slot->region;
  }
  if (region.buffer < 0) region.buffer = AddBuffer({.bytes = layout.bytes()});
  places_[id].push_back({region, layout});
  return region;
}

absl::StatusOr<Place> Lowering::BucketSlot(const Node& all_reduce, size_t i) {
  std::vector<Place>& slots = bucket_slots_[all_reduce.id];
  if (slots.empty()) {
    std::vector<Place> laid;  // All inputs or none.
    Region region{AddBuffer({}), 0};
    for (const ValueId input : all_reduce.inputs) {
      Layout layout = Layout::Plain(value(input).dtype, shape(input));
      if (const ValueId parameter = ParameterOf(input); parameter != kNoValue) {
        TANDEM_ASSIGN_OR_RETURN(const Place home, Home(parameter));
        layout = home.layout;
      }
      laid.push_back({region, layout});
      region.offset += Align(layout.bytes());
    }
    buffers_[region.buffer].bytes = region.offset;
    slots = std::move(laid);
  }
  return slots[i];
}

void Lowering::Alias(ValueId id, Place place) { places_[id].push_back(std::move(place)); }

Region Lowering::Scratch(int64_t bytes) { return {AddBuffer({.bytes = bytes}), 0}; }

const Region* Lowering::FindTransformed(ValueId weight) const {
  const auto found = transformed_.find(weight);
  return found == transformed_.end() ? nullptr : &found->second;
}

void Lowering::Changed(ValueId id) {
  transformed_.erase(id);
  if (!places_[id].empty()) places_[id].erase(places_[id].begin() + 1, places_[id].end());
}

void Lowering::Emit(Step step) { steps_.push_back(std::move(step)); }

const Region* Lowering::FindSums(NodeId node) const {
  const auto found = sums_.find(node);
  return found == sums_.end() ? nullptr : &found->second;
}

const Node* Lowering::MakerOf(ValueId id, absl::string_view kind) const {
  const NodeId producer = value(id).producer;
  if (producer == kNoNode || graph_.node(producer).op->kind() != kind) return nullptr;
  return &graph_.node(producer);
}

const Node* Lowering::OnlyReader(ValueId id, absl::string_view kind) const {
  if (is_output_[id] || readers_[id].size() != 1) return nullptr;
  const Node& node = graph_.node(readers_[id][0]);
  const bool once = std::count(node.inputs.begin(), node.inputs.end(), id) == 1;
  return once && node.op->kind() == kind ? &node : nullptr;
}

bool Lowering::ChangesAfter(ValueId id, NodeId after) const {
  for (const NodeId reader : readers_[id]) {
    if (reader <= after) continue;
    const Node& node = graph_.node(reader);
    for (const int i : node.op->MutatedInputs()) {
      if (node.inputs[i] == id) return true;
    }
  }
  return false;
}

absl::Status Lowering::Finish() {
  for (const ValueId id : graph_.variables()) TANDEM_RETURN_IF_ERROR(Home(id).status());
  for (const ValueId id : graph_.outputs()) {
    // The host may read outputs after the inputs are gone.
    TANDEM_ASSIGN_OR_RETURN(const Place home, Home(id));
    TANDEM_RETURN_IF_ERROR(GetFixed(id, home.layout).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Place> Lowering::Output(int i) { return Home(graph_.outputs()[i]); }

ValueId Lowering::ParameterOf(ValueId grad) const {
  for (const NodeId id : readers_[grad]) {
    const Node& node = graph_.node(id);
    const bool updates = dynamic_cast<const UpdateOp*>(node.op.get()) != nullptr;
    if (updates && node.inputs[1] == grad) return node.inputs[0];
    if (node.op->kind() == "all_reduce" || node.op->kind() == "clip_gradients") {
      const size_t i = std::find(node.inputs.begin(), node.inputs.end(), grad) - node.inputs.begin();
      const ValueId parameter = ParameterOf(node.outputs[i]);
      if (parameter != kNoValue) return parameter;
    }
  }
  return kNoValue;
}

absl::Status CheckFloat32(const Lowering& lowering, const Node& node, ValueId id) {
  const Value& value = lowering.value(id);
  if (value.dtype == DType::kFloat32) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("cpu: ", node.op->kind(), " of ", ToString(value.dtype),
                                               value.shape.ToString(), "; this backend computes in float32"));
}

}  // namespace tandem::cpu
