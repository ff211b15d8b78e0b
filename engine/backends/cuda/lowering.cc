#include "engine/backends/cuda/lowering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backend/memory_groups.h"
#include "engine/backend/workspace.h"
#include "engine/backends/cuda/kernels/convert.h"
#include "engine/backends/cuda/narrowing.h"
#include "engine/base/status_macros.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/ops/update.h"

namespace tandem::cuda {
namespace {

constexpr int64_t kAlignment = 256;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A few graphs share variables: for whole batches, for the last batch, and for validation. The limit is a
// power of two, so that the measurements of a network also serve similar networks.
int64_t WorkspaceCapOf(int64_t planned_bytes, const CudaOptions& options) {
  const int64_t bytes = kWorkspaceCapBytes / 4 + WorkspaceShareBytes(planned_bytes);
  int64_t cap = 1;
  while (cap <= bytes / 2) cap *= 2;
  return std::min(
      cap, options.workspace_limit_bytes > 0 ? options.workspace_limit_bytes : kGpuWorkspaceLimitBytes);
}

}  // namespace

Lowering::Lowering(const Graph& graph, CudaVariables* variables, DeviceContext* device)
    : graph_(graph),
      variables_(variables),
      device_(device),
      planned_bytes_(PlanMemory(graph).arena_bytes),
      workspace_cap_(WorkspaceCapOf(planned_bytes_, device->options)),
      readers_(graph.values().size()),
      is_output_(graph.values().size(), false),
      absorbed_(graph.nodes().size(), false),
      places_(graph.values().size()),
      changed_(graph.values().size(), false) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      std::vector<NodeId>& readers = readers_[input];
      if (readers.empty() || readers.back() != node.id) readers.push_back(node.id);
    }
  }
  for (const ValueId output : graph.outputs()) is_output_[output] = true;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& input = graph.value(graph.inputs()[i]);
    const Layout layout = Layout::Plain(input.dtype, input.shape);
    const int buffer =
        AddBuffer({.source = Buffer::Source::kInput, .bytes = layout.bytes(), .input = static_cast<int>(i)});
    places_[input.id].push_back({{buffer, 0}, layout});
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
  const Value& value = graph_.value(id);
  if (places_[id].empty()) {
    if (value.role != ValueRole::kVariable) {
      return absl::InternalError(
          absl::StrCat("value ", id, " \"", value.name, "\" is read before it is made"));
    }
    TANDEM_RETURN_IF_ERROR(SettleVariable(id, Layout::Plain(value.dtype, value.shape)));
  }
  return places_[id].front();
}

absl::Status Lowering::SettleVariable(ValueId id, const Layout& layout) {
  const Value& value = graph_.value(id);
  if (!places_[id].empty() || value.role != ValueRole::kVariable) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const Layout settled, variables_->Settle(value.name, layout.WithType(value.dtype)));
  const int buffer = AddBuffer({.source = Buffer::Source::kVariable,
                                .bytes = settled.bytes(),
                                .memory = variables_->data(value.name)});
  places_[id].push_back({{buffer, 0}, settled});
  return absl::OkStatus();
}

absl::StatusOr<Region> Lowering::Get(ValueId id, const Layout& layout) {
  TANDEM_RETURN_IF_ERROR(SettleVariable(id, layout));
  TANDEM_ASSIGN_OR_RETURN(const Place home, Home(id));
  for (const Place& place : places_[id]) {
    if (place.layout == layout) return place.region;
  }
  Region region;
  if (graph_.value(id).role == ValueRole::kVariable && !changed_[id] && compute() != DType::kFloat32 &&
      home.layout.dtype() == DType::kFloat32 && layout == home.layout.WithType(compute())) {
    region = Narrow(home, layout);
  } else {
    TANDEM_ASSIGN_OR_RETURN(region, Convert(home, layout));
  }
  places_[id].push_back({region, layout});
  return region;
}

absl::StatusOr<Region> Lowering::GetPlain(ValueId id) {
  return Get(id, Layout::Plain(value(id).dtype, shape(id)));
}

absl::StatusOr<Region> Lowering::GetPlainCompute(ValueId id) {
  const DType own = value(id).dtype;
  return Get(id, Layout::Plain(own == DType::kFloat32 ? compute() : own, shape(id)));
}

absl::StatusOr<Region> Lowering::Convert(const Place& from, const Layout& to) {
  const auto convertible = [this](DType dtype) {
    return dtype == DType::kFloat32 || dtype == compute() || dtype == DType::kUInt8;
  };
  if (from.layout.dtype() != to.dtype() && !(convertible(from.layout.dtype()) && convertible(to.dtype()))) {
    return absl::UnimplementedError(absl::StrCat("cuda: ", ToString(from.layout.dtype()),
                                                 to.shape().ToString(), " as ", ToString(to.dtype())));
  }
  const Region source = from.region;
  const Region target = Scratch(to.bytes());
  const ChannelSizes sizes = ChannelSizesOf(to.shape());
  const DType from_type = from.layout.dtype();
  const DType to_type = to.dtype();
  const bool from_last = from.layout.channels_last();
  const bool to_last = to.channels_last();
  Emit({.name = from_last == to_last ? "convert type" : "convert layout",
        .reads = {source},
        .writes = {target},
        .run = [=](const RunContext& run) {
          ConvertLayout(sizes, run.At<const void>(source), from_type, from_last, run.At<void>(target),
                        to_type, to_last, run.stream);
          return absl::OkStatus();
        }});
  return target;
}

// Converts all variables together when the first is needed. Before this step no variable has changed.
Region Lowering::Narrow(const Place& from, const Layout& to) {
  if (narrowing_ == nullptr) {
    narrowing_ = std::make_shared<Narrowing>(to.dtype());
    narrowing_step_ = steps_.size();
    Emit({.name = "convert parameters",
          .run =
              [narrowing = narrowing_](const RunContext& run) {
                narrowing->Run(run.stream);
                return absl::OkStatus();
              },
          .bind = [narrowing = narrowing_](const RunContext& run) { return narrowing->Bind(run); }});
  }
  const Region target = Scratch(to.bytes());
  narrowing_->Add(from.region, target, to.elements());
  steps_[narrowing_step_].reads.push_back(from.region);
  steps_[narrowing_step_].writes.push_back(target);
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
    std::vector<Buffer::Gap> gaps;
    for (const ValueId input : all_reduce.inputs) {
      Layout layout = Layout::Plain(value(input).dtype, shape(input));
      if (const ValueId parameter = ParameterOf(input); parameter != kNoValue) {
        TANDEM_ASSIGN_OR_RETURN(const Place home, Home(parameter));
        layout = home.layout;
      }
      laid.push_back({region, layout});
      const int64_t end = region.offset + layout.bytes();
      region.offset += Align(layout.bytes());
      if (end < region.offset) gaps.push_back({end, region.offset - end});
    }
    buffers_[region.buffer].bytes = region.offset;
    buffers_[region.buffer].gaps = std::move(gaps);
    slots = std::move(laid);
  }
  return slots[i];
}

void Lowering::Alias(ValueId id, Place place) { places_[id].push_back(std::move(place)); }

Region Lowering::Scratch(int64_t bytes) { return {AddBuffer({.bytes = bytes}), 0}; }

Region Lowering::KeptZeros(int64_t bytes) {
  return {AddBuffer({.source = Buffer::Source::kConstant, .bytes = bytes, .dtype = DType::kUInt8}), 0};
}

void Lowering::Changed(ValueId id) {
  changed_[id] = true;
  if (!places_[id].empty()) places_[id].erase(places_[id].begin() + 1, places_[id].end());
}

void Lowering::Emit(Step step) { steps_.push_back(std::move(step)); }

const Node* Lowering::MakerOf(ValueId id, absl::string_view kind) const {
  const NodeId producer = value(id).producer;
  if (producer == kNoNode || graph_.node(producer).op->kind() != kind) return nullptr;
  return &graph_.node(producer);
}

bool Lowering::InBucket(Region region) const {
  return std::any_of(bucket_slots_.begin(), bucket_slots_.end(), [&](const auto& bucket) {
    return !bucket.second.empty() && bucket.second[0].region.buffer == region.buffer;
  });
}

const Node* Lowering::OnlyReader(ValueId id, absl::string_view kind) const {
  if (is_output_[id] || readers_[id].size() != 1) return nullptr;
  const Node& node = graph_.node(readers_[id][0]);
  const bool once = std::count(node.inputs.begin(), node.inputs.end(), id) == 1;
  return once && node.op->kind() == kind ? &node : nullptr;
}

bool Lowering::ChangesBetween(ValueId id, NodeId first, NodeId last) const {
  for (const NodeId reader : readers_[id]) {
    if (reader <= first || reader >= last) continue;
    const Node& node = graph_.node(reader);
    for (const int i : node.op->MutatedInputs()) {
      if (node.inputs[i] == id) return true;
    }
  }
  return false;
}

absl::Status Lowering::Finish() {
  for (const ValueId id : graph_.variables()) TANDEM_RETURN_IF_ERROR(Home(id).status());
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    TANDEM_RETURN_IF_ERROR(Output(static_cast<int>(i)).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Place> Lowering::Output(int i) {
  const ValueId id = graph_.outputs()[i];
  TANDEM_ASSIGN_OR_RETURN(const Place home, Home(id));
  const Layout layout = home.layout.WithType(value(id).dtype);
  TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, layout));
  return Place{region, layout};
}

ValueId Lowering::ParameterOf(ValueId grad) const {
  for (const NodeId id : readers_[grad]) {
    const Node& node = graph_.node(id);
    const bool updates = dynamic_cast<const UpdateOp*>(node.op.get()) != nullptr;
    if (updates && node.inputs[1] == grad) return node.inputs[0];
    if (node.op->kind() != "all_reduce" && node.op->kind() != "unscale_gradients" &&
        node.op->kind() != "clip_gradients")
      continue;
    for (const auto& [output, input] : node.op->InPlace()) {
      if (node.inputs[input] != grad) continue;
      const ValueId parameter = ParameterOf(node.outputs[output]);
      if (parameter != kNoValue) return parameter;
    }
  }
  return kNoValue;
}

absl::Status CheckFloat32(const Lowering& lowering, const Node& node, ValueId id) {
  const Value& value = lowering.value(id);
  if (value.dtype == DType::kFloat32) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("cuda: ", node.op->kind(), " of ", ToString(value.dtype),
                                               value.shape.ToString(), "; this backend computes in float32"));
}

}  // namespace tandem::cuda
