#ifndef TANDEM_ENGINE_GRAPH_GRAPH_H_
#define TANDEM_ENGINE_GRAPH_GRAPH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/op.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem {

// The source of a value.
enum class ValueRole : uint8_t {
  kInput,         // The host gives it at every run.
  kVariable,      // The device keeps it from run to run, under its name.
  kConstant,      // Every element has the same number.
  kIntermediate,  // A node computes it.
};

// The purpose of a variable. Replicas treat the kinds differently.
enum class VariableKind : uint8_t {
  kParameter,       // Learned. Equal in all replicas under all-reduce.
  kOptimizerState,  // The optimizer keeps it for a parameter.
  kStatistic,       // A replica's own running statistics.
  kResidual,        // A replica's own: the part of its gradients that it has not sent yet.
  kMeter,           // Sums that the host reads and clears.
};

// A tensor of the graph. Its shape is fixed when the graph is built.
struct Value {
  ValueId id = kNoValue;
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  ValueRole role = ValueRole::kIntermediate;
  VariableKind variable_kind = VariableKind::kParameter;  // Valid for kVariable.
  double constant = 0;                                    // Valid for kConstant.
  NodeId producer = kNoNode;                              // Valid for kIntermediate.
};

// An operation on values.
struct Node {
  NodeId id = kNoNode;
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// The computation of a single run: nodes in the order of their effects. A node reads earlier values. Some ops
// change variables in place (Op::MutatedInputs), and later nodes read the changed variables.
// Thread-compatible.
class Graph {
 public:
  // Declares a value that the host gives at every run. `name` is unique among inputs and variables.
  ValueId AddInput(absl::string_view name, DType dtype, Shape shape);
  // Declares a variable. The device sets a new variable to zero. `name` is unique among inputs and variables.
  ValueId AddVariable(absl::string_view name, VariableKind kind, DType dtype, Shape shape);
  ValueId AddConstant(double value, DType dtype, Shape shape);

  // Appends a node and returns its outputs. INVALID_ARGUMENT with all shapes if the op does not accept the
  // inputs.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // As AddNode, for an op with a single output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);

  // Lets the host read the value after a run.
  void MarkOutput(ValueId value);

  const Value& value(ValueId id) const { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::deque<Value>& values() const { return values_; }
  const std::deque<Node>& nodes() const { return nodes_; }
  // Inputs, variables and outputs, each in order of declaration.
  absl::Span<const ValueId> inputs() const { return inputs_; }
  absl::Span<const ValueId> variables() const { return variables_; }
  absl::Span<const ValueId> outputs() const { return outputs_; }
  // Returns the cost of the node's op with the node's values.
  OpCost CostOf(const Node& node) const;
  // Return the value of this name, or kNoValue.
  ValueId FindInput(absl::string_view name) const;
  ValueId FindVariable(absl::string_view name) const;

  // Returns the graph for people, a line for each node: "y:float32[128, 20, 24, 24] = conv2d(x, weight,
  // bias)".
  std::string ToString() const;

 private:
  ValueId AddValue(Value value);
  std::vector<TensorType> TypesOf(const std::vector<ValueId>& ids) const;

  std::deque<Value> values_;  // Indexed by id. References stay valid.
  std::deque<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> variables_;
  std::vector<ValueId> outputs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_GRAPH_H_
