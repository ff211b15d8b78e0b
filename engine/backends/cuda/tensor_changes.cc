#include "engine/backends/cuda/tensor_changes.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/update.h"

namespace tandem::cuda {
namespace {

// Returns the number of pieces of a tensor.
int64_t PiecesOf(int64_t elements, int64_t piece_size) { return (elements + piece_size - 1) / piece_size; }

int64_t PieceSizeOf(const std::vector<TensorChanges::Change>& changes) {
  int64_t elements = 0;
  for (const TensorChanges::Change& change : changes) elements += change.elements;
  return ChangePieceSize(elements);
}

bool Contains(const std::vector<int>& places, int place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

// Returns whether `node` changes the value.
bool Mutates(const Node& node, ValueId id) {
  for (const int i : node.op->MutatedInputs()) {
    if (node.inputs[i] == id) return true;
  }
  return false;
}

// Returns whether `node` may run at the place of `first`, an earlier node.
bool MayMove(const Lowering& lowering, const Node& node, NodeId first) {
  const std::vector<int> mutated = node.op->MutatedInputs();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    const NodeId producer = lowering.value(input).producer;
    if (producer != kNoNode && producer >= first) return false;
    const bool changes = Contains(mutated, static_cast<int>(i));
    for (const NodeId reader : lowering.uses().readers(input)) {
      if (reader < first || reader >= node.id) continue;
      if (changes || Mutates(lowering.graph().node(reader), input)) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<ChangeSource> ChangeSourceOf(Lowering& lowering, ValueId id, const Layout& layout) {
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(id));
  if (home.layout == layout.WithType(lowering.compute())) {
    return ChangeSource{home.region, lowering.compute()};
  }
  TANDEM_ASSIGN_OR_RETURN(const Region region, lowering.Get(id, layout.WithType(DType::kFloat32)));
  return ChangeSource{region, DType::kFloat32};
}

absl::StatusOr<ApplyFlag> ApplyFlag::Of(Lowering& lowering, ValueId id, Step& step) {
  ApplyFlag flag;
  if (id == kNoValue) return flag;
  TANDEM_ASSIGN_OR_RETURN(flag.region, lowering.GetPlain(id));
  step.reads.push_back(flag.region);
  return flag;
}

ValueId ApplyOf(const Node& update) {
  const int input = static_cast<const UpdateOp&>(*update.op).ApplyInput(update.inputs.size());
  return input < 0 ? kNoValue : update.inputs[input];
}

int64_t TensorChanges::pieces() const {
  const int64_t piece_size = PieceSizeOf(changes_);
  int64_t pieces = 0;
  for (const Change& change : changes_) pieces += PiecesOf(change.elements, piece_size);
  return pieces;
}

absl::Status TensorChanges::Fill(const std::vector<Change>& changes, const RunContext& run, Bound& bound) {
  const int64_t piece_size = PieceSizeOf(changes);
  std::vector<TensorChange> tensors;
  std::vector<ChangePiece> pieces;
  for (const Change& change : changes) {
    TensorChange tensor;
    tensor.target = run.At<float>(change.target);
    tensor.source = run.At(change.source.region);
    tensor.source_type = change.source.type;
    for (size_t i = 0; i < change.states.size(); ++i) tensor.states[i] = run.At<float>(change.states[i]);
    tensor.elements = change.elements;
    for (int64_t i = 0; i < PiecesOf(change.elements, piece_size); ++i) {
      pieces.push_back({static_cast<int32_t>(tensors.size()), static_cast<int32_t>(i)});
    }
    tensors.push_back(tensor);
  }
  bound.table.tensor_count = static_cast<int>(tensors.size());
  bound.table.piece_count = static_cast<int>(pieces.size());
  bound.tensors = std::make_unique<DeviceTable<TensorChange>>(std::move(tensors));
  bound.pieces = std::make_unique<DeviceTable<ChangePiece>>(std::move(pieces));
  TANDEM_RETURN_IF_ERROR(bound.tensors->Upload(run.stream));
  TANDEM_RETURN_IF_ERROR(bound.pieces->Upload(run.stream));
  bound.table.tensors = bound.tensors->data();
  bound.table.pieces = bound.pieces->data();
  bound.table.piece_size = piece_size;
  return absl::OkStatus();
}

std::shared_ptr<const TensorChanges::Bound> TensorChanges::Bind(Step& step) && {
  for (const Change& change : changes_) {
    std::vector<Region> changed = change.states;
    if (change.is_new) {
      if (change.may_replace && change.source.type == DType::kFloat32) {
        step.in_place.emplace_back(static_cast<int>(step.writes.size()), static_cast<int>(step.reads.size()));
      }
      step.writes.push_back(change.target);
    } else {
      changed.push_back(change.target);
    }
    step.bound.insert(step.bound.end(), {change.source.region, change.target});
    step.bound.insert(step.bound.end(), changed.begin(), changed.end());
    step.reads.push_back(change.source.region);
    step.reads.insert(step.reads.end(), changed.begin(), changed.end());
    step.writes.insert(step.writes.end(), changed.begin(), changed.end());
  }
  auto bound = std::make_shared<Bound>();
  step.bind = [bound, changes = std::move(changes_)](const RunContext& run) {
    return Fill(changes, run, *bound);
  };
  return bound;
}

std::vector<const Node*> TakeTogether(Lowering& lowering, const Node& node,
                                      const std::function<bool(const Node& other)>& alike) {
  std::vector<const Node*> together = {&node};
  const auto count = static_cast<NodeId>(lowering.graph().nodes().size());
  for (NodeId id = node.id + 1; id < count; ++id) {
    const Node& other = lowering.graph().node(id);
    if (lowering.absorbed(id) || !alike(other) || !MayMove(lowering, other, node.id)) continue;
    together.push_back(&other);
    lowering.Absorb(id);
  }
  return together;
}

}  // namespace tandem::cuda
