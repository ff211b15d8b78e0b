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

// Where a value comes from.
enum class ValueRole : uint8_t {
  kInput,         // Given by the host at every run.
  kVariable,      // Lives on the device from run to run, and is known to it by name.
  kConstant,      // The same number in each element.
  kIntermediate,  // Computed by a node.
};

// What a variable is for; says how replicas treat it.
enum class VariableKind : uint8_t {
  kParameter,       // Learned; equal in all replicas under all-reduce.
  kOptimizerState,  // Kept by the optimizer for a parameter.
  kStatistic,       // A replica's own running statistics.
  kMeter,           // Sums that the host reads and clears.
};

// A tensor of the graph. Its shape is known when the graph is built.
struct Value {
  ValueId id = kNoValue;
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  ValueRole role = ValueRole::kIntermediate;
  VariableKind variable_kind = VariableKind::kParameter;  // Of a kVariable.
  double constant = 0;                                    // Of a kConstant.
  NodeId producer = kNoNode;                              // Of a kIntermediate.
};

// One operation on values.
struct Node {
  NodeId id = kNoNode;
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// What a device computes in one run: nodes in the order in which they take effect. A node reads values made
// before it; some ops (Op::MutatedInputs) change variables in place, which later nodes then see changed.
// Thread-compatible.
class Graph {
 public:
  // Declares what the host gives at every run. Names are unique among inputs and variables.
  ValueId AddInput(absl::string_view name, DType dtype, Shape shape);
  // Declares a variable; new ones are zero on the device until written.
  ValueId AddVariable(absl::string_view name, VariableKind kind, DType dtype, Shape shape);
  ValueId AddConstant(double value, DType dtype, Shape shape);

  // Appends a node and returns its outputs. INVALID_ARGUMENT, with both shapes, where the op does not take
  // the inputs.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // For an op of one output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);

  // Makes a value readable by the host after a run.
  void MarkOutput(ValueId value);

  const Value& value(ValueId id) const { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::deque<Value>& values() const { return values_; }
  const std::deque<Node>& nodes() const { return nodes_; }
  // In the order in which they were declared.
  absl::Span<const ValueId> inputs() const { return inputs_; }
  absl::Span<const ValueId> variables() const { return variables_; }
  absl::Span<const ValueId> outputs() const { return outputs_; }
  // kNoValue where there is none of the name.
  ValueId FindInput(absl::string_view name) const;
  ValueId FindVariable(absl::string_view name) const;

  // One line a node, for people: "y:float32[128, 20, 24, 24] = conv2d(x, weight, bias)".
  std::string ToString() const;

 private:
  ValueId AddValue(Value value);

  std::deque<Value> values_;  // Indexed by id; references stay valid.
  std::deque<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> variables_;
  std::vector<ValueId> outputs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_GRAPH_H_
