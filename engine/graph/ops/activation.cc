#include "engine/graph/ops/activation.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// The cost of an exponential or a similar function.
constexpr double kFlopsPerElement = 10;

absl::StatusOr<std::vector<TensorType>> InferOneShape(const Op& op, absl::Span<const TensorType> inputs,
                                                      size_t count, const ActivationRule& rule) {
  if (!std::isfinite(rule.alpha) || !std::isfinite(rule.threshold)) {
    return InputError(op, inputs, absl::StrCat("the numbers of ", rule.ToString(), " must be finite"));
  }
  if (rule.function == ActivationFunction::kSoftplus && rule.alpha <= 0) {
    return InputError(op, inputs, absl::StrCat("alpha is ", rule.alpha, ", but must be above 0"));
  }
  return InferAlike(op, inputs, count);
}

}  // namespace

std::string ActivationRule::ToString() const {
  switch (function) {
    case ActivationFunction::kLeakyRelu:
      return absl::StrCat("leaky_relu alpha=", alpha);
    case ActivationFunction::kElu:
      return absl::StrCat("elu alpha=", alpha);
    case ActivationFunction::kGelu:
      return "gelu";
    case ActivationFunction::kGeluTanh:
      return "gelu_tanh";
    case ActivationFunction::kSigmoid:
      return "sigmoid";
    case ActivationFunction::kTanh:
      return "tanh";
    case ActivationFunction::kSilu:
      return "silu";
    case ActivationFunction::kSoftplus:
      return absl::StrCat("softplus alpha=", alpha, " threshold=", threshold);
    case ActivationFunction::kHardSwish:
      return "hard_swish";
    case ActivationFunction::kSelu:
      return "selu";
  }
  return "";
}

absl::StatusOr<std::vector<TensorType>> ActivationOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferOneShape(*this, inputs, 1, rule);
}

absl::StatusOr<std::vector<ValueId>> ActivationOp::Gradient(Graph& graph, const Node& node,
                                                            absl::Span<const ValueId> grad_outputs,
                                                            const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<ActivationGradOp>(rule),
                         {node.inputs[0], grad_outputs[0]});
}

OpCost ActivationOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kFlopsPerElement, inputs);
}

absl::StatusOr<std::vector<TensorType>> ActivationGradOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferOneShape(*this, inputs, 2, rule);
}

OpCost ActivationGradOp::Cost(absl::Span<const TensorType> inputs,
                              absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kFlopsPerElement, inputs);
}

}  // namespace tandem
