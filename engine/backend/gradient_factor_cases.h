#ifndef TANDEM_ENGINE_BACKEND_GRADIENT_FACTOR_CASES_H_
#define TANDEM_ENGINE_BACKEND_GRADIENT_FACTOR_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Cases of the compression of gradients. A part of OpCases.
std::vector<OpCase> GradientFactorCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_GRADIENT_FACTOR_CASES_H_
