#ifndef TANDEM_ENGINE_GRAPH_OP_H_
#define TANDEM_ENGINE_GRAPH_OP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem {

class Graph;
struct Node;

// Indices of values and nodes in a Graph.
using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;
inline constexpr NodeId kNoNode = -1;

// The type and the shape of a tensor.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  // Returns for example "float32[128, 10]".
  std::string ToString() const;
};

// The cost of an op, from its shapes alone.
struct OpCost {
  double flops = 0;  // Multiplications and additions.
  double bytes = 0;  // Bytes read and written, each tensor counted once.
};

// An operation: its kind, attributes, shape rule, gradient rule and cost. The subclasses are in ops/, a file
// for each family. Their attributes are public members, which backends read. Immutable after it is added to a
// graph.
class Op {
 public:
  virtual ~Op() = default;

  // Returns the kind, such as "conv2d". Backends choose their code by it. All objects of a class have the
  // same kind.
  virtual absl::string_view kind() const = 0;
  // Returns the attributes for people, such as "stride=[1, 1] padding=[2, 2]". May be empty.
  virtual std::string attributes() const { return ""; }

  // Returns the types of the outputs. INVALID_ARGUMENT with the shapes if the inputs do not fit.
  virtual absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const = 0;

  // Appends nodes to `graph` that compute the gradients of `node`, a node with this op. `grad_outputs[i]` is
  // the gradient of output i, or kNoValue if output i has no influence. `wanted[i]` says whether to compute
  // the gradient of input i. Returns a value for each input, or kNoValue if it has no gradient or is not
  // wanted. UNIMPLEMENTED if the op is not differentiable.
  virtual absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const;

  // Returns the positions of the inputs that the op changes in place. They are variables. Empty for a pure
  // op.
  virtual std::vector<int> MutatedInputs() const { return {}; }

  // Returns pairs (output, input) of equal size. The output may reuse the input's memory if no later node
  // reads the input. Backends may ignore the pairs.
  virtual std::vector<std::pair<int, int>> InPlace() const { return {}; }

  // Returns the cost. Default: a flop for each output element, and the bytes of all inputs and outputs.
  virtual OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OP_H_
