#ifndef TANDEM_ENGINE_BACKEND_OPTIMIZER_CASES_H_
#define TANDEM_ENGINE_BACKEND_OPTIMIZER_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Cases of what changes parameters and clips their gradients, a part of OpCases.
std::vector<OpCase> OptimizerCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_OPTIMIZER_CASES_H_
