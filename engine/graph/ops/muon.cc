#include "engine/graph/ops/muon.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {

std::string MuonOp::attributes() const {
  return absl::StrCat("momentum=", settings.momentum, settings.nesterov ? " nesterov" : "",
                      " weight_decay=", settings.weight_decay, " steps=", settings.steps, " coefficients=[",
                      absl::StrJoin(settings.coefficients, ", "), "] epsilon=", settings.epsilon,
                      settings.match_adamw ? " match_adamw" : "");
}

double MuonOp::Scale(int64_t rows, int64_t columns) const {
  const double r = static_cast<double>(rows);
  const double c = static_cast<double>(columns);
  return settings.match_adamw ? 0.2 * std::sqrt(std::max(r, c)) : std::sqrt(std::max(1.0, r / c));
}

std::string MuonOp::Fault() const {
  const auto finite = [](double number) { return std::isfinite(number); };
  if (settings.steps < 1 || settings.steps > kMaxSteps) {
    return absl::StrCat("steps is ", settings.steps, ", not from 1 to ", kMaxSteps);
  }
  if (!std::all_of(settings.coefficients.begin(), settings.coefficients.end(), finite)) {
    return "a coefficient is not finite";
  }
  return FirstFault({FaultOfShare("momentum", settings.momentum), FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay)});
}

std::string MuonOp::FaultOf(const Shape& parameter) const {
  return parameter.rank() == 2 && parameter.elements() > 0 ? "" : "the parameter must be a matrix";
}

double MuonOp::Flops(const Shape& parameter) const {
  const double small = static_cast<double>(std::min(parameter[0], parameter[1]));
  const double large = static_cast<double>(std::max(parameter[0], parameter[1]));
  // The momentum and the update, then X X^T, A A and the product with X.
  return 12 * small * large + settings.steps * (4 * small * small * large + 2 * small * small * small);
}

}  // namespace tandem
