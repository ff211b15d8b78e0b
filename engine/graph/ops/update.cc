#include "engine/graph/ops/update.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

constexpr int kFirstState = 4;

}  // namespace

absl::StatusOr<std::vector<TensorType>> UpdateOp::Infer(absl::Span<const TensorType> inputs) const {
  if (const std::string fault = Fault(); !fault.empty()) return InputError(*this, inputs, fault);
  const std::vector<absl::string_view> kept = states();
  const size_t count = kFirstState + kept.size();
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, count, count + 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  if (const std::string fault = FaultOf(inputs[0].shape); !fault.empty()) {
    return InputError(*this, inputs, fault);
  }
  if (inputs[1].shape != inputs[0].shape) {
    return InputError(*this, inputs, "the gradient must have the parameter's shape");
  }
  const TensorType number = {DType::kFloat64, Shape()};
  TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, 2, number, "the learning rate"));
  TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, 3, {DType::kInt64, Shape()}, "the step"));
  for (size_t i = 0; i < kept.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, kFirstState + i, inputs[0], kept[i]));
  }
  if (const int apply = ApplyInput(inputs.size()); apply >= 0) {
    TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, apply, number, "apply"));
  }
  return std::vector<TensorType>{};
}

int UpdateOp::ApplyInput(size_t inputs) const {
  const size_t own = kFirstState + states().size();
  return inputs > own ? static_cast<int>(own) : -1;
}

std::vector<int> UpdateOp::MutatedInputs() const {
  std::vector<int> mutated = {0};
  for (size_t i = 0; i < states().size(); ++i) mutated.push_back(kFirstState + static_cast<int>(i));
  return mutated;
}

OpCost UpdateOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = Flops(inputs[0].shape);
  return cost;
}

std::string FaultOfShare(absl::string_view name, double value) {
  return value >= 0 && value < 1 ? "" : absl::StrCat(name, " is ", value, ", not in [0, 1)");
}

std::string FaultOfEpsilon(double value) {
  return value > 0 && std::isfinite(value) ? "" : absl::StrCat("epsilon is ", value, ", not above 0");
}

std::string FaultOfNonNegative(absl::string_view name, double value) {
  return value >= 0 && std::isfinite(value) ? "" : absl::StrCat(name, " is ", value, ", below 0");
}

std::string FirstFault(std::initializer_list<std::string> faults) {
  for (const std::string& fault : faults) {
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace tandem
