#ifndef TANDEM_ENGINE_BACKEND_OPTIMIZER_CASES_H_
#define TANDEM_ENGINE_BACKEND_OPTIMIZER_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns the cases of ops that update parameters and clip gradients. A part of OpCases.
std::vector<OpCase> OptimizerCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_OPTIMIZER_CASES_H_
