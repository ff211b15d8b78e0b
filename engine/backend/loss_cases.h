#ifndef TANDEM_ENGINE_BACKEND_LOSS_CASES_H_
#define TANDEM_ENGINE_BACKEND_LOSS_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns the cases of losses and of ops that count correct answers. A part of OpCases.
std::vector<OpCase> LossCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOSS_CASES_H_
