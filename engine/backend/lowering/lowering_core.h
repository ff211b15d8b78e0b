#ifndef TANDEM_ENGINE_BACKEND_LOWERING_LOWERING_CORE_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_LOWERING_CORE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/backend/lowering/buffer.h"
#include "engine/backend/lowering/buffer_places.h"
#include "engine/backend/lowering/laid_out_variables.h"
#include "engine/backend/lowering/step.h"
#include "engine/base/status_macros.h"
#include "engine/graph/fusions.h"
#include "engine/graph/graph_uses.h"

namespace tandem {

// The place and the layout of a value.
template <typename Layout>
struct PlaceOf {
  Region region;
  Layout layout;
};

// Turns a graph into the steps and buffers of an executable. It takes nodes in order. Each node adds steps
// and defines the places of its outputs. A value is computed in a single layout and type, and converted once
// for readers of another. A backend derives its Lowering, which adds the steps of each op and converts
// layouts.
//
// `Backend` has the types Layout (a value type with Plain, WithType, dtype, shape, bytes), Memory (see
// LaidOutVariables) and RunContext (see StepOf), and the constants kName, "cpu" for example, and kAlignment,
// of buffers, in bytes.
template <typename Backend>
class LoweringCore {
 public:
  using Layout = typename Backend::Layout;
  using Place = PlaceOf<Layout>;
  using Step = StepOf<typename Backend::RunContext>;
  using Variables = LaidOutVariables<Layout, typename Backend::Memory>;

  // The graph and the variables must outlive this object. `variables` has declared the graph's variables.
  LoweringCore(const Graph& graph, Variables* variables, const FusableKinds& kinds);
  virtual ~LoweringCore() = default;
  LoweringCore(const LoweringCore&) = delete;
  LoweringCore& operator=(const LoweringCore&) = delete;

  // Adds the steps of all nodes, sets the layouts of free variables, and gives all outputs for the host a
  // place. UNIMPLEMENTED if the backend cannot compute a node.
  absl::Status LowerGraph();

  const Graph& graph() const { return graph_; }
  const GraphUses& uses() const { return uses_; }
  const Value& value(ValueId id) const { return graph_.value(id); }
  const Shape& shape(ValueId id) const { return graph_.value(id).shape; }

  // Returns the place of the value in its own type. Converts a value that was computed in another type. Sets
  // a variable's free layout to plain.
  absl::StatusOr<Place> Home(ValueId id);
  // Returns the place in which the value was computed. A float32 value may be in a narrow type.
  absl::StatusOr<Place> HomeAsMade(ValueId id);
  // Sets a variable's layout if it is free. Does nothing for other values. The type is always the variable's
  // own.
  absl::Status SettleVariable(ValueId id, const Layout& layout);
  // Returns the place of the value in `layout`. Converts the value if necessary. Sets a variable's free
  // layout to `layout`, in the variable's type.
  absl::StatusOr<Region> Get(ValueId id, const Layout& layout);
  // As Get, plain and in the value's own type.
  absl::StatusOr<Region> GetPlain(ValueId id) { return Get(id, Layout::Plain(value(id).dtype, shape(id))); }
  // As GetPlain, for the node's inputs from input `first` on.
  absl::StatusOr<std::vector<Region>> GetAllPlain(const Node& node, size_t first = 0);
  // As Get, but never memory whose address changes from run to run. Default: Get, for backends that copy
  // inputs.
  virtual absl::StatusOr<Region> GetFixed(ValueId id, const Layout& layout) { return Get(id, layout); }

  // Defines that the value will be in `layout`, in its own memory. A value for an all_reduce that wants this
  // layout is placed in its bucket.
  Region Define(ValueId id, const Layout& layout);
  // As Define, plain and in the value's own type.
  Region DefinePlain(ValueId id) { return Define(id, Layout::Plain(value(id).dtype, shape(id))); }
  // As DefinePlain, for all outputs of the node.
  std::vector<Region> DefineAllPlain(const Node& node);
  // Defines that the value shares the place of another value.
  void Alias(ValueId id, Place place) { places_[id].push_back(std::move(place)); }
  // Returns the place for the i-th input of an all_reduce node. All inputs are next to each other, in order.
  // Gradients have the layouts of their parameters, so all replicas agree, whatever the sizes of their
  // batches.
  absl::StatusOr<Place> BucketSlot(const Node& all_reduce, size_t i);
  // Returns whether the region belongs to an all_reduce's bucket.
  bool InBucket(Region region) const;
  // Returns memory of a single step.
  Region Scratch(int64_t bytes) { return {AddBuffer({.bytes = bytes}), 0}; }
  // Records that the value changes in place: its conversions are out of date.
  virtual void Changed(ValueId id);
  void Emit(Step step) { steps_.push_back(std::move(step)); }

  // Returns whether the value has a place. False if its producer is postponed to a later node.
  bool IsMade(ValueId id) const { return value(id).producer == kNoNode || !places_[id].empty(); }
  // Records that another node's steps also do the work of this node.
  void Absorb(NodeId id) { absorbed_[id] = true; }
  bool absorbed(NodeId id) const { return absorbed_[id]; }
  const Fusions& fusions() const { return fusions_; }
  // Returns the ReLU that directly follows the node and that the node's steps may compute, or null. The
  // backend accepts by Absorb.
  const Node* ReluAfter(const Node& node) const;
  // Records that the steps of the group's first node do the work of all its nodes.
  void Accept(const ForwardGroup& group);

  // The results.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  absl::StatusOr<Place> Output(int i) { return Home(graph_.outputs()[i]); }

 protected:
  int AddBuffer(Buffer buffer);
  // Changes the place of a value in `layout`.
  void Move(ValueId id, const Layout& layout, Region region);

 private:
  // Adds the steps of a node.
  virtual absl::Status LowerNode(const Node& node) = 0;
  // As LowerNode. Gives the node's flops to the step that is named after the node's op.
  absl::Status LowerWithCost(const Node& node);
  // Adds steps that convert the value. Returns memory in the layout `to`. UNIMPLEMENTED if the backend
  // cannot.
  virtual absl::StatusOr<Region> Convert(ValueId id, const Place& from, const Layout& to) = 0;

  const Graph& graph_;
  Variables* const variables_;
  const GraphUses uses_;
  const Fusions fusions_;
  std::vector<bool> absorbed_;                         // By node.
  std::vector<std::vector<Place>> places_;             // By value. The first place is the home.
  std::map<NodeId, std::vector<Place>> bucket_slots_;  // By all_reduce node, then by input.
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
};

// UNIMPLEMENTED, with the kind, if `find(kind)` is null for a node's kind.
template <typename Find>
absl::Status CheckOffered(const Graph& graph, absl::string_view backend, const Find& find) {
  for (const Node& node : graph.nodes()) {
    if (find(node.op->kind()) != nullptr) continue;
    return absl::UnimplementedError(
        absl::StrCat(backend, ": this backend does not offer the op ", node.op->kind()));
  }
  return absl::OkStatus();
}

// UNIMPLEMENTED if a value of the node must be float32 and is not.
template <typename Backend>
absl::Status CheckFloat32(const LoweringCore<Backend>& lowering, const Node& node, ValueId id) {
  const Value& value = lowering.value(id);
  if (value.dtype == DType::kFloat32) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(Backend::kName, ": ", node.op->kind(), " of ",
                                               ToString(value.dtype), value.shape.ToString(),
                                               "; this backend computes in float32"));
}

template <typename Backend>
LoweringCore<Backend>::LoweringCore(const Graph& graph, Variables* variables, const FusableKinds& kinds)
    : graph_(graph),
      variables_(variables),
      uses_(graph),
      fusions_(uses_, kinds),
      absorbed_(graph.nodes().size(), false),
      places_(graph.values().size()) {
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

template <typename Backend>
absl::Status LoweringCore<Backend>::LowerGraph() {
  for (const Node& node : graph_.nodes()) {
    if (absorbed_[node.id] || fusions_.SumsBackward(node)) continue;
    // If the other summand does not exist yet, the group is computed at the place of its sum.
    const ForwardGroup* begun = fusions_.From(node);
    if (begun != nullptr && begun->add != nullptr && !IsMade(begun->addend)) continue;
    const ForwardGroup* summed = fusions_.WithSum(node);
    if (summed != nullptr && !IsMade(summed->first->outputs[0])) {
      TANDEM_RETURN_IF_ERROR(LowerWithCost(*summed->first));
    }
    if (!absorbed_[node.id]) TANDEM_RETURN_IF_ERROR(LowerWithCost(node));
  }
  for (const ValueId id : graph_.variables()) TANDEM_RETURN_IF_ERROR(Home(id).status());
  for (const ValueId id : graph_.outputs()) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, Home(id));
    // The host may read outputs after the inputs are gone.
    TANDEM_RETURN_IF_ERROR(GetFixed(id, home.layout).status());
  }
  return absl::OkStatus();
}

template <typename Backend>
absl::Status LoweringCore<Backend>::LowerWithCost(const Node& node) {
  const size_t first = steps_.size();
  TANDEM_RETURN_IF_ERROR(LowerNode(node));
  // Names such as "max_pool2d_grad + conv2d_grad_weight tiled". A ':' follows the op's preparations.
  const auto named = std::find_if(steps_.begin() + first, steps_.end(), [&](const Step& step) {
    const std::vector<absl::string_view> words = absl::StrSplit(step.name, ' ');
    return absl::c_linear_search(words, node.op->kind());
  });
  if (named != steps_.end()) named->flops = graph_.CostOf(node).flops;
  return absl::OkStatus();
}

template <typename Backend>
int LoweringCore<Backend>::AddBuffer(Buffer buffer) {
  buffers_.push_back(std::move(buffer));
  return static_cast<int>(buffers_.size()) - 1;
}

template <typename Backend>
auto LoweringCore<Backend>::Home(ValueId id) -> absl::StatusOr<Place> {
  TANDEM_ASSIGN_OR_RETURN(const Place home, HomeAsMade(id));
  if (home.layout.dtype() == value(id).dtype) return home;
  const Layout layout = home.layout.WithType(value(id).dtype);
  TANDEM_ASSIGN_OR_RETURN(const Region region, Get(id, layout));
  return Place{region, layout};
}

template <typename Backend>
auto LoweringCore<Backend>::HomeAsMade(ValueId id) -> absl::StatusOr<Place> {
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

template <typename Backend>
absl::Status LoweringCore<Backend>::SettleVariable(ValueId id, const Layout& layout) {
  const Value& value = graph_.value(id);
  if (!places_[id].empty() || value.role != ValueRole::kVariable) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const Layout settled, variables_->Settle(value.name, layout.WithType(value.dtype)));
  const int buffer = AddBuffer({.source = Buffer::Source::kVariable,
                                .bytes = settled.bytes(),
                                .memory = variables_->data(value.name)});
  places_[id].push_back({{buffer, 0}, settled});
  return absl::OkStatus();
}

template <typename Backend>
absl::StatusOr<Region> LoweringCore<Backend>::Get(ValueId id, const Layout& layout) {
  TANDEM_RETURN_IF_ERROR(SettleVariable(id, layout));
  for (const Place& place : places_[id]) {
    if (place.layout == layout) return place.region;
  }
  TANDEM_ASSIGN_OR_RETURN(const Place home, HomeAsMade(id));
  TANDEM_ASSIGN_OR_RETURN(const Region region, Convert(id, home, layout));
  places_[id].push_back({region, layout});
  return region;
}

template <typename Backend>
absl::StatusOr<std::vector<Region>> LoweringCore<Backend>::GetAllPlain(const Node& node, size_t first) {
  std::vector<Region> regions;
  for (size_t i = first; i < node.inputs.size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(regions.emplace_back(), GetPlain(node.inputs[i]));
  }
  return regions;
}

template <typename Backend>
std::vector<Region> LoweringCore<Backend>::DefineAllPlain(const Node& node) {
  std::vector<Region> regions;
  for (const ValueId id : node.outputs) regions.push_back(DefinePlain(id));
  return regions;
}

template <typename Backend>
Region LoweringCore<Backend>::Define(ValueId id, const Layout& layout) {
  Region region;
  if (const Node* reduction = uses_.OnlyReader(id, "all_reduce"); reduction != nullptr) {
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

template <typename Backend>
auto LoweringCore<Backend>::BucketSlot(const Node& all_reduce, size_t i) -> absl::StatusOr<Place> {
  std::vector<Place>& slots = bucket_slots_[all_reduce.id];
  if (slots.empty()) {
    std::vector<Place> laid;  // All inputs or none.
    Region region{AddBuffer({}), 0};
    std::vector<Buffer::Gap> gaps;
    for (const ValueId input : all_reduce.inputs) {
      Layout layout = Layout::Plain(value(input).dtype, shape(input));
      if (const ValueId parameter = uses_.ParameterOf(input); parameter != kNoValue) {
        TANDEM_ASSIGN_OR_RETURN(const Place home, Home(parameter));
        layout = home.layout;
      }
      laid.push_back({region, layout});
      const int64_t end = region.offset + layout.bytes();
      region.offset += AlignTo(Backend::kAlignment, layout.bytes());
      if (end < region.offset) gaps.push_back({end, region.offset - end});
    }
    buffers_[region.buffer].bytes = region.offset;
    buffers_[region.buffer].gaps = std::move(gaps);
    slots = std::move(laid);
  }
  return slots[i];
}

template <typename Backend>
bool LoweringCore<Backend>::InBucket(Region region) const {
  return std::any_of(bucket_slots_.begin(), bucket_slots_.end(), [&](const auto& bucket) {
    return !bucket.second.empty() && bucket.second[0].region.buffer == region.buffer;
  });
}

template <typename Backend>
void LoweringCore<Backend>::Changed(ValueId id) {
  if (!places_[id].empty()) places_[id].erase(places_[id].begin() + 1, places_[id].end());
}

template <typename Backend>
void LoweringCore<Backend>::Move(ValueId id, const Layout& layout, Region region) {
  for (Place& place : places_[id]) {
    if (place.layout == layout) place.region = region;
  }
}

template <typename Backend>
const Node* LoweringCore<Backend>::ReluAfter(const Node& node) const {
  const ForwardGroup* group = fusions_.From(node);
  return group == nullptr || group->add != nullptr ? nullptr : group->relu;
}

template <typename Backend>
void LoweringCore<Backend>::Accept(const ForwardGroup& group) {
  if (group.add != nullptr) Absorb(group.add->id);
  if (group.relu != nullptr) Absorb(group.relu->id);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_LOWERING_CORE_H_
