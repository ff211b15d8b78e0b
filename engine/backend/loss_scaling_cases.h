#ifndef TANDEM_ENGINE_BACKEND_LOSS_SCALING_CASES_H_
#define TANDEM_ENGINE_BACKEND_LOSS_SCALING_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns the cases of scaled losses and skipped steps. A part of OpCases.
std::vector<OpCase> LossScalingCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOSS_SCALING_CASES_H_
