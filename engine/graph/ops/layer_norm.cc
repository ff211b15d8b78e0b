#include "engine/graph/ops/layer_norm.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// Checks that the last `dimensions` dimensions of input 0 can be normalised with this epsilon.
absl::Status CheckNormalized(const Op& op, absl::Span<const TensorType> inputs, int dimensions,
                             double epsilon) {
  if (dimensions < 1 || dimensions > inputs[0].shape.rank()) {
    return InputError(op, inputs, absl::StrCat("the input has no ", dimensions, " dimensions to normalise"));
  }
  return CheckEpsilon(op, inputs, epsilon);
}

}  // namespace

std::string LayerNormOp::attributes() const {
  return absl::StrCat("dimensions=", dimensions, " epsilon=", epsilon);
}

absl::StatusOr<std::vector<TensorType>> LayerNormOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckNormalized(*this, inputs, dimensions, epsilon));
  const Shape normalized = inputs[0].shape.From(-dimensions);
  if (inputs[1].shape != normalized || inputs[2].shape != normalized) {
    return InputError(*this, inputs,
                      absl::StrCat("weight and bias must have the shape ", normalized.ToString()));
  }
  const TensorType moments = {SumType(inputs[0].dtype), inputs[0].shape.UpTo(-dimensions)};
  return std::vector<TensorType>{inputs[0], moments, moments};
}

absl::StatusOr<std::vector<ValueId>> LayerNormOp::Gradient(Graph& graph, const Node& node,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  if (grad_outputs[1] != kNoValue || grad_outputs[2] != kNoValue) {
    return absl::UnimplementedError("layer_norm: its mean and variance are not differentiable");
  }
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<ValueId> grads,
      graph.AddNode(std::make_shared<LayerNormGradOp>(dimensions, epsilon),
                    {node.inputs[0], grad_outputs[0], node.inputs[1], node.outputs[1], node.outputs[2]}));
  return WantedOnly(std::move(grads), wanted);
}

OpCost LayerNormOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  // The sum, the difference, its square and their sum, then the quotient, the product and the sum.
  return WithFlops(Op::Cost(inputs, outputs), 7, inputs);
}

std::string LayerNormGradOp::attributes() const {
  return absl::StrCat("dimensions=", dimensions, " epsilon=", epsilon);
}

absl::StatusOr<std::vector<TensorType>> LayerNormGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 5, 5));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckNormalized(*this, inputs, dimensions, epsilon));
  const TensorType weight = {inputs[0].dtype, inputs[0].shape.From(-dimensions)};
  const TensorType moments = {SumType(inputs[0].dtype), inputs[0].shape.UpTo(-dimensions)};
  if (inputs[1] != inputs[0] || inputs[2] != weight || inputs[3] != moments || inputs[4] != moments) {
    return InputError(*this, inputs, "the inputs are not those of one layer_norm");
  }
  return std::vector<TensorType>{inputs[0], weight, weight};
}

OpCost LayerNormGradOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 14, inputs);
}

}  // namespace tandem
