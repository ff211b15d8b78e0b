#include "engine/graph/ops/class_loss.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

using Mode = ClassLossSettings::Mode;

std::string AttributesOf(const ClassLossSettings& settings) {
  std::string text = settings.mode == Mode::kCrossEntropy    ? "cross_entropy"
                     : settings.mode == Mode::kLogLikelihood ? "log_likelihood"
                                                             : "hinge";
  if (settings.mode == Mode::kHinge) {
    absl::StrAppend(&text, " p=", settings.p, " margin=", settings.margin);
  } else if (settings.label_smoothing != 0) {
    absl::StrAppend(&text, " label_smoothing=", settings.label_smoothing);
  }
  if (!settings.weights.empty()) absl::StrAppend(&text, " weights=", settings.weights.size());
  if (settings.ignore_index.has_value()) absl::StrAppend(&text, " ignore_index=", *settings.ignore_index);
  return text + (settings.sum ? " sum" : "");
}

// Returns the fault of the settings for this number of classes, or "".
std::string FaultOf(const ClassLossSettings& settings, int64_t classes) {
  if (!(settings.label_smoothing >= 0 && settings.label_smoothing < 1)) {
    return absl::StrCat("label_smoothing is ", settings.label_smoothing, ", not in [0, 1)");
  }
  if (settings.label_smoothing != 0 && settings.mode != Mode::kCrossEntropy) {
    return "label_smoothing is for cross-entropy alone";
  }
  if (!settings.weights.empty() && settings.weights.size() != static_cast<size_t>(classes)) {
    return absl::StrCat("there are ", settings.weights.size(), " weights for ", classes, " classes");
  }
  for (const double weight : settings.weights) {
    if (!(weight >= 0 && std::isfinite(weight))) return absl::StrCat("a weight is ", weight);
  }
  if (settings.p != 1 && settings.p != 2) return absl::StrCat("p is ", settings.p, ", not 1 or 2");
  if (!std::isfinite(settings.margin)) return absl::StrCat("margin is ", settings.margin);
  return "";
}

// Checks that inputs 0 and 1 are fitting scores and targets.
absl::Status CheckScoresAndTargets(const Op& op, const ClassLossSettings& settings,
                                   absl::Span<const TensorType> inputs) {
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, 0));
  const Shape& scores = inputs[0].shape;
  if (scores.rank() < 1 || scores.elements() == 0) {
    return InputError(op, inputs, "the scores must be [..., classes], not empty");
  }
  if (const std::string fault = FaultOf(settings, scores[-1]); !fault.empty()) {
    return InputError(op, inputs, fault);
  }
  if (IsFloatingPoint(inputs[1].dtype)) {
    if (settings.mode != Mode::kCrossEntropy || settings.ignore_index.has_value()) {
      return InputError(op, inputs, "probabilities are for cross-entropy without ignore_index");
    }
    if (inputs[1].shape == scores) return absl::OkStatus();
    return InputError(op, inputs, absl::StrCat("the probabilities must be ", scores.ToString()));
  }
  return CheckType(op, inputs, 1, {DType::kInt32, scores.UpTo(-1)}, "the targets");
}

}  // namespace

std::string ClassLossOp::attributes() const { return AttributesOf(settings); }

absl::StatusOr<std::vector<TensorType>> ClassLossOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckScoresAndTargets(*this, settings, inputs));
  return std::vector<TensorType>(3, TensorType{SumType(inputs[0].dtype), Shape()});
}

absl::StatusOr<std::vector<ValueId>> ClassLossOp::Gradient(Graph& graph, const Node& node,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  if (grad_outputs[1] != kNoValue || grad_outputs[2] != kNoValue) {
    return absl::UnimplementedError("class_loss: its sum and its weight are not differentiable");
  }
  if (wanted[1]) return absl::UnimplementedError("class_loss: its targets have no gradient");
  return GradientOfFirst(graph, wanted, std::make_shared<ClassLossGradOp>(settings),
                         {node.inputs[0], node.inputs[1], grad_outputs[0]});
}

OpCost ClassLossOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  // The maximum, the difference, the exponential and the sums.
  return WithFlops(Op::Cost(inputs, outputs), 5, inputs);
}

std::string ClassLossGradOp::attributes() const { return AttributesOf(settings); }

absl::StatusOr<std::vector<TensorType>> ClassLossGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckScoresAndTargets(*this, settings, inputs));
  TANDEM_RETURN_IF_ERROR(CheckLossGradient(*this, inputs));
  return std::vector<TensorType>{inputs[0]};
}

OpCost ClassLossGradOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 7, inputs);
}

}  // namespace tandem
