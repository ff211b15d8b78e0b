#include "engine/graph/graph.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// The largest tensor, in elements. The bytes of all tensors of a graph can be added without overflow.
constexpr int64_t kMostElements = int64_t{1} << 40;

absl::Status CheckSize(const Op& op, const TensorType& type) {
  for (const int64_t extent : type.shape.extents()) {
    if (extent < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.kind(), ": ", type.ToString(), " has an extent below 1"));
    }
  }
  if (type.shape.elements() > kMostElements) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.kind(), ": ", type.ToString(), " has more than ", kMostElements, " elements"));
  }
  return absl::OkStatus();
}

// Returns the name of a value for people: its own name, or its number.
std::string Label(const Value& value) {
  if (value.role == ValueRole::kConstant) return absl::StrCat(value.constant);
  return value.name.empty() ? absl::StrCat("%", value.id) : value.name;
}

std::string Declaration(const Value& value) {
  return absl::StrCat(Label(value), ":", TensorType{value.dtype, value.shape}.ToString());
}

}  // namespace

ValueId Graph::AddValue(Value value) {
  value.id = static_cast<ValueId>(values_.size());
  values_.push_back(std::move(value));
  return values_.back().id;
}

ValueId Graph::AddInput(absl::string_view name, DType dtype, Shape shape) {
  assert(FindInput(name) == kNoValue && FindVariable(name) == kNoValue);
  const ValueId id = AddValue(
      {.name = std::string(name), .shape = std::move(shape), .dtype = dtype, .role = ValueRole::kInput});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddVariable(absl::string_view name, VariableKind kind, DType dtype, Shape shape) {
  assert(FindInput(name) == kNoValue && FindVariable(name) == kNoValue);
  const ValueId id = AddValue({.name = std::string(name),
                               .shape = std::move(shape),
                               .dtype = dtype,
                               .role = ValueRole::kVariable,
                               .variable_kind = kind});
  variables_.push_back(id);
  return id;
}

ValueId Graph::AddConstant(double value, DType dtype, Shape shape) {
  return AddValue({.name = {},
                   .shape = std::move(shape),
                   .dtype = dtype,
                   .role = ValueRole::kConstant,
                   .constant = value});
}

absl::StatusOr<std::vector<ValueId>> Graph::AddNode(std::shared_ptr<const Op> op,
                                                    std::vector<ValueId> inputs) {
  std::vector<TensorType> input_types;
  input_types.reserve(inputs.size());
  for (const ValueId id : inputs) {
    assert(id >= 0 && static_cast<size_t>(id) < values_.size());
    input_types.push_back({values_[id].dtype, values_[id].shape});
    TANDEM_RETURN_IF_ERROR(CheckSize(*op, input_types.back()));
  }
  TANDEM_ASSIGN_OR_RETURN(std::vector<TensorType> output_types, op->Infer(input_types));
  for (const TensorType& type : output_types) TANDEM_RETURN_IF_ERROR(CheckSize(*op, type));
  for (const int i : op->MutatedInputs()) {
    const Value& value = values_[inputs[i]];
    if (value.role != ValueRole::kVariable) {
      return absl::InvalidArgumentError(absl::StrCat(op->kind(), ": input ", i, ", ", Declaration(value),
                                                     ", is changed in place and must be a variable"));
    }
  }
  const NodeId node = static_cast<NodeId>(nodes_.size());
  std::vector<ValueId> outputs;
  outputs.reserve(output_types.size());
  for (TensorType& type : output_types) {
    outputs.push_back(
        AddValue({.name = {}, .shape = std::move(type.shape), .dtype = type.dtype, .producer = node}));
  }
  nodes_.push_back({node, std::move(op), std::move(inputs), outputs});
  return outputs;
}

absl::StatusOr<ValueId> Graph::Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  const Op& called = *op;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddNode(std::move(op), std::move(inputs)));
  if (outputs.size() != 1) {
    return absl::InternalError(absl::StrCat(called.kind(), " has ", outputs.size(), " outputs, not one"));
  }
  return outputs[0];
}

void Graph::MarkOutput(ValueId value) { outputs_.push_back(value); }

std::vector<TensorType> Graph::TypesOf(const std::vector<ValueId>& ids) const {
  std::vector<TensorType> types;
  for (const ValueId id : ids) types.push_back({value(id).dtype, value(id).shape});
  return types;
}

OpCost Graph::CostOf(const Node& node) const {
  return node.op->Cost(TypesOf(node.inputs), TypesOf(node.outputs));
}

ValueId Graph::FindInput(absl::string_view name) const {
  for (const ValueId id : inputs_) {
    if (values_[id].name == name) return id;
  }
  return kNoValue;
}

ValueId Graph::FindVariable(absl::string_view name) const {
  for (const ValueId id : variables_) {
    if (values_[id].name == name) return id;
  }
  return kNoValue;
}

std::string Graph::ToString() const {
  std::string text;
  for (const ValueId id : inputs_) absl::StrAppend(&text, "input ", Declaration(values_[id]), "\n");
  for (const ValueId id : variables_) absl::StrAppend(&text, "variable ", Declaration(values_[id]), "\n");
  const auto declare = [this](std::string* out, ValueId id) { out->append(Declaration(values_[id])); };
  const auto name = [this](std::string* out, ValueId id) { out->append(Label(values_[id])); };
  for (const Node& node : nodes_) {
    if (!node.outputs.empty()) absl::StrAppend(&text, absl::StrJoin(node.outputs, ", ", declare), " = ");
    absl::StrAppend(&text, node.op->kind(), "(", absl::StrJoin(node.inputs, ", ", name), ")");
    const std::string attributes = node.op->attributes();
    if (!attributes.empty()) absl::StrAppend(&text, " ", attributes);
    text += "\n";
  }
  if (!outputs_.empty()) absl::StrAppend(&text, "output ", absl::StrJoin(outputs_, ", ", name), "\n");
  return text;
}

}  // namespace tandem
