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

// Indices into a Graph.
using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;
inline constexpr NodeId kNoNode = -1;

// Type and shape of a tensor.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  // "float32[128, 10]".
  std::string ToString() const;
};

// What an op costs, from its shapes alone.
struct OpCost {
  double flops = 0;  // Multiplications and additions, each counted as one.
  double bytes = 0;  // Read and written, each tensor once.
};

// An operation: a kind, its attributes, its shape rule, its gradient rule and its cost. Subclasses stand in
// ops/, one file a family; their attributes are public const-like members, which backends read. Immutable
// once in a graph.
class Op {
 public:
  virtual ~Op() = default;

  // The kind, such as "conv2d": backends choose their code by it. Equal for all objects of a class.
  virtual absl::string_view kind() const = 0;
  // Attributes for people, such as "stride=[1, 1] padding=[2, 2]"; may be empty.
  virtual std::string attributes() const { return ""; }

  // Types of the outputs. INVALID_ARGUMENT with the shapes at fault where the inputs do not fit.
  virtual absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const = 0;

  // Appends to `graph` what computes the gradients of the inputs of `node` (whose op this is) from those of
  // its outputs; `grad_outputs[i]` is kNoValue where output i does not matter. `wanted[i]` says whether input
  // i's gradient is needed. Returns one value an input, kNoValue where it has none or is not wanted.
  // UNIMPLEMENTED for ops that are not differentiable.
  virtual absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const;

  // Positions among the inputs of the variables that the op changes in place; none for a pure op.
  virtual std::vector<int> MutatedInputs() const { return {}; }

  // An output that may take the memory of an input of the same size that nobody needs afterwards: pairs
  // (output, input). Backends may use it or not.
  virtual std::vector<std::pair<int, int>> InPlace() const { return {}; }

  virtual OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OP_H_
