#include "engine/training/targets.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/statistics.h"
#include "engine/losses/loss.h"

namespace tandem {

absl::StatusOr<std::string> TargetRangeFault(const v1::Loss& loss, const Dataset& split,
                                             const DatasetInfo& data) {
  const bool is_scaled = data.preparation.has_value() && data.preparation->target_deviation() > 0;
  if (is_scaled && !TakesScaledTargets(loss)) {
    return "are scaled, but only mse, l1, huber and smooth_l1 take scaled targets; give csv.target_scaling: "
           "none";
  }
  if (!TakesProbabilities(loss)) return "";
  constexpr float kRounding = 1e-5F;  // Of probabilities computed in float32.
  TANDEM_ASSIGN_OR_RETURN(const std::optional<Range> range, RangeOfTargets(split, data));
  if (!range.has_value() || (range->least >= -kRounding && range->largest <= 1 + kRounding)) return "";
  return absl::StrCat("are from ", range->least, " to ", range->largest,
                      ", but the loss takes numbers in [0, 1]; scale them, or choose another loss");
}

}  // namespace tandem
