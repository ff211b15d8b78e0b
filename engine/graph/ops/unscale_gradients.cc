#include "engine/graph/ops/unscale_gradients.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string UnscaleGradientsOp::attributes() const {
  return absl::StrCat("growth_factor=", settings.growth_factor, " backoff_factor=", settings.backoff_factor,
                      " growth_interval=", settings.growth_interval);
}

absl::StatusOr<std::vector<TensorType>> UnscaleGradientsOp::Infer(absl::Span<const TensorType> inputs) const {
  const auto error = [&](absl::string_view why) { return InputError(*this, inputs, why); };
  if (count < 1) return error(absl::StrCat("count is ", count, ", but must be at least 1"));
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, kFirstGradient + count, kFirstGradient + count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, kFirstGradient, inputs.size() - 1));
  if (inputs[0] != TensorType{inputs[kFirstGradient].dtype, Shape()}) {
    return error("the scale must be one number of the gradients' type");
  }
  const TensorType number = {DType::kFloat64, Shape()};
  if (inputs[1] != number || inputs[2] != number || inputs[3] != TensorType{DType::kFloat64, Shape({1})}) {
    return error("good and skipped must be float64[], and the meter float64[1]");
  }
  const TensorType steps = {DType::kInt64, Shape()};
  if (inputs[4] != steps) return error("the step must be int64[]");
  if (!(settings.growth_factor > 1 && std::isfinite(settings.growth_factor))) {
    return error(absl::StrCat("growth_factor is ", settings.growth_factor, ", not above 1"));
  }
  if (!(settings.backoff_factor > 0 && settings.backoff_factor < 1)) {
    return error(absl::StrCat("backoff_factor is ", settings.backoff_factor, ", not in (0, 1)"));
  }
  if (settings.growth_interval < 1) {
    return error(absl::StrCat("growth_interval is ", settings.growth_interval, ", not at least 1"));
  }
  std::vector<TensorType> outputs = {number, steps};
  outputs.insert(outputs.end(), inputs.begin() + kFirstGradient, inputs.end());
  return outputs;
}

std::vector<std::pair<int, int>> UnscaleGradientsOp::InPlace() const {
  return PairsInPlace(kFirstResult, kFirstGradient, count);
}

}  // namespace tandem
