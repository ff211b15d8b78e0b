#include "engine/graph/ops/lstm.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"
#include "engine/graph/ops/linear.h"

namespace tandem {
namespace {

// The tensor types of an LSTM with H units over N samples of L positions.
struct LstmTypes {
  TensorType sequence;  // [N, L, H]
  TensorType gates;     // [N, L, 4 H]
  TensorType state;     // [N, H]
  TensorType weight;    // [4 H, H]
  TensorType bias;      // [4 H]
};

LstmTypes TypesFor(DType dtype, int64_t samples, int64_t length, int64_t units) {
  return {.sequence = {dtype, Shape({samples, length, units})},
          .gates = {dtype, Shape({samples, length, 4 * units})},
          .state = {dtype, Shape({samples, units})},
          .weight = {dtype, Shape({4 * units, units})},
          .bias = {dtype, Shape({4 * units})}};
}

// Returns the multiplications and additions of the matrix products of all steps.
double ProductFlops(const Shape& sequence) { return 8.0 * sequence.elements() * sequence[2]; }

}  // namespace

absl::StatusOr<std::vector<TensorType>> LstmOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 5, 5));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 4));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 3));
  const Shape& projected = inputs[0].shape;
  if (projected[2] % 4 != 0) return InputError(*this, inputs, "the last extent of input 0 must be 4 H");
  const LstmTypes types = TypesFor(inputs[0].dtype, projected[0], projected[1], projected[2] / 4);
  if (inputs[1] != types.state || inputs[2] != types.state || inputs[3] != types.weight ||
      inputs[4] != types.bias) {
    return InputError(*this, inputs,
                      absl::StrCat("the states must be ", types.state.ToString(), ", the weight ",
                                   types.weight.ToString(), " and the bias ", types.bias.ToString()));
  }
  return std::vector<TensorType>{types.sequence, types.state, types.state, types.gates, types.sequence};
}

absl::StatusOr<std::vector<ValueId>> LstmOp::Gradient(Graph& graph, const Node& node,
                                                      absl::Span<const ValueId> grad_outputs,
                                                      const std::vector<bool>& wanted) const {
  if (grad_outputs[3] != kNoValue || grad_outputs[4] != kNoValue) {
    return absl::UnimplementedError("lstm: its gates and cells are not differentiable");
  }
  const std::vector<ValueId> outputs = node.outputs;
  std::vector<ValueId> inputs = {node.inputs[3], node.inputs[1], node.inputs[2],
                                 outputs[0],     outputs[3],     outputs[4]};
  for (int i = 0; i < 3; ++i) inputs.push_back(OrZeros(graph, grad_outputs[i], outputs[i]));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                          graph.AddNode(std::make_shared<LstmGradOp>(reverse), std::move(inputs)));
  std::vector<ValueId> grads(5, kNoValue);
  for (size_t i = 0; i < 3; ++i) {
    if (wanted[i]) grads[i] = made[i];
  }
  if (!wanted[3] && !wanted[4]) return grads;
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> learned,
      graph.AddNode(std::make_shared<LinearGradWeightOp>(/*has_bias=*/wanted[4]), {made[3], made[0]}));
  if (wanted[3]) grads[3] = learned[0];
  if (wanted[4]) grads[4] = learned[1];
  return grads;
}

OpCost LstmOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  // Five functions, two sums of gates, three products and a sum.
  cost.flops = ProductFlops(outputs[0].shape) + 17.0 * outputs[0].shape.elements();
  return cost;
}

absl::StatusOr<std::vector<TensorType>> LstmGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 9, 9));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 8));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 3, 3));
  const Shape& y = inputs[3].shape;
  const LstmTypes types = TypesFor(inputs[3].dtype, y[0], y[1], y[2]);
  const TensorType expected[] = {types.weight,   types.state,    types.state, types.sequence, types.gates,
                                 types.sequence, types.sequence, types.state, types.state};
  for (size_t i = 0; i < inputs.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, i, expected[i], absl::StrCat("input ", i)));
  }
  return std::vector<TensorType>{types.gates, types.state, types.state, types.sequence};
}

OpCost LstmGradOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = ProductFlops(inputs[3].shape) + 30.0 * inputs[3].shape.elements();
  return cost;
}

}  // namespace tandem
