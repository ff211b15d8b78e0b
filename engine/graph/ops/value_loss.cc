#include "engine/graph/ops/value_loss.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

using Mode = ValueLossSettings::Mode;
using Reduction = ValueLossSettings::Reduction;

const char* NameOf(Mode mode) {
  switch (mode) {
    case Mode::kSquared:
      return "squared";
    case Mode::kAbsolute:
      return "absolute";
    case Mode::kHuber:
      return "huber";
    case Mode::kSmoothL1:
      return "smooth_l1";
    case Mode::kLogistic:
      return "logistic";
    case Mode::kKl:
      return "kl";
    case Mode::kKlOfLogs:
      return "kl_of_logs";
  }
  return "unknown";
}

std::string AttributesOf(const ValueLossSettings& settings) {
  std::string text = NameOf(settings.mode);
  if (settings.mode == Mode::kHuber || settings.mode == Mode::kSmoothL1) {
    absl::StrAppend(&text, " width=", settings.width);
  }
  if (!settings.positive_weights.empty()) {
    absl::StrAppend(&text, " positive_weights=", settings.positive_weights.size());
  }
  if (!settings.weights.empty()) absl::StrAppend(&text, " weights=", settings.weights.size());
  if (settings.reduction == Reduction::kBatchMean) text += " batch_mean";
  if (settings.reduction == Reduction::kSum) text += " sum";
  return text;
}

// Returns the fault of the settings for this shape, or "".
std::string FaultOf(const ValueLossSettings& settings, const Shape& shape) {
  const bool least = settings.mode == Mode::kSmoothL1 ? settings.width >= 0 : settings.width > 0;
  if (!least || !std::isfinite(settings.width)) return absl::StrCat("width is ", settings.width);
  if (!settings.positive_weights.empty() && settings.mode != Mode::kLogistic) {
    return "positive weights are for the logistic loss alone";
  }
  for (const std::vector<double>* weights : {&settings.positive_weights, &settings.weights}) {
    if (weights->empty()) continue;
    if (shape.elements() % static_cast<int64_t>(weights->size()) != 0) {
      return absl::StrCat(weights->size(), " weights do not go into ", shape.elements(), " elements");
    }
    const bool good = std::all_of(weights->begin(), weights->end(),
                                  [](double weight) { return weight >= 0 && std::isfinite(weight); });
    if (!good) return "a weight is below 0 or not finite";
  }
  return "";
}

absl::Status CheckNumbers(const Op& op, const ValueLossSettings& settings,
                          absl::Span<const TensorType> inputs) {
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, 0));
  const Shape& x = inputs[0].shape;
  if (x.elements() == 0) return InputError(op, inputs, "there are no numbers");
  if (const std::string fault = FaultOf(settings, x); !fault.empty()) return InputError(op, inputs, fault);
  if (IsFloatingPoint(inputs[1].dtype) && inputs[1].shape == x) return absl::OkStatus();
  const bool classes = settings.mode == Mode::kLogistic && x.rank() == 2 && x[1] == 1 &&
                       inputs[1] == TensorType{DType::kInt32, Shape({x[0]})};
  if (classes) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("the targets must be numbers ", x.ToString()));
}

}  // namespace

double ValueLossSettings::Divisor(const Shape& shape) const {
  switch (reduction) {
    case Reduction::kMean:
      return static_cast<double>(shape.elements());
    case Reduction::kBatchMean:
      return shape.rank() == 0 ? 1 : static_cast<double>(shape[0]);
    case Reduction::kSum:
      break;
  }
  return 1;
}

std::string ValueLossOp::attributes() const { return AttributesOf(settings); }

absl::StatusOr<std::vector<TensorType>> ValueLossOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckNumbers(*this, settings, inputs));
  return std::vector<TensorType>{{SumType(inputs[0].dtype), Shape()}};
}

absl::StatusOr<std::vector<ValueId>> ValueLossOp::Gradient(Graph& graph, const Node& node,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  if (wanted[1]) return absl::UnimplementedError("value_loss: its targets have no gradient");
  return GradientOfFirst(graph, wanted, std::make_shared<ValueLossGradOp>(settings),
                         {node.inputs[0], node.inputs[1], grad_outputs[0]});
}

OpCost ValueLossOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 4, inputs);
}

std::string ValueLossGradOp::attributes() const { return AttributesOf(settings); }

absl::StatusOr<std::vector<TensorType>> ValueLossGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckNumbers(*this, settings, inputs));
  TANDEM_RETURN_IF_ERROR(CheckLossGradient(*this, inputs));
  return std::vector<TensorType>{inputs[0]};
}

OpCost ValueLossGradOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 4, inputs);
}

}  // namespace tandem
