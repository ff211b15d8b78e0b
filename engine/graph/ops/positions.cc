#include "engine/graph/ops/positions.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::Status CheckHasFirst(const Op& op, absl::Span<const TensorType> inputs) {
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, inputs.size() - 1));
  return CheckLeastRank(op, inputs, 0, 1);
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> AddToEachOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckHasFirst(*this, inputs));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, inputs[0].shape.From(1)));
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> AddToEachOp::Gradient(Graph& graph, const Node& /*node*/,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  std::vector<ValueId> grads = {wanted[0] ? grad_outputs[0] : kNoValue, kNoValue};
  if (wanted[1]) {
    TANDEM_ASSIGN_OR_RETURN(grads[1], graph.Add(std::make_shared<SumOfEachOp>(), {grad_outputs[0]}));
  }
  return grads;
}

absl::StatusOr<std::vector<TensorType>> SumOfEachOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckHasFirst(*this, inputs));
  return std::vector<TensorType>{{inputs[0].dtype, inputs[0].shape.From(1)}};
}

OpCost SumOfEachOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 1, inputs);
}

absl::StatusOr<std::vector<TensorType>> AddSinusoidsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 3));
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> AddSinusoidsOp::Gradient(Graph& /*graph*/, const Node& /*node*/,
                                                              absl::Span<const ValueId> grad_outputs,
                                                              const std::vector<bool>& wanted) const {
  return std::vector<ValueId>{wanted[0] ? grad_outputs[0] : kNoValue};
}

double Sinusoid(int64_t l, int64_t d, int64_t dimension) {
  const double exponent = static_cast<double>(d / 2 * 2) / static_cast<double>(dimension);
  const double angle = static_cast<double>(l) / std::pow(10000.0, exponent);
  return d % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

}  // namespace tandem
