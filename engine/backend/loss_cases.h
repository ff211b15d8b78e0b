#ifndef TANDEM_ENGINE_BACKEND_LOSS_CASES_H_
#define TANDEM_ENGINE_BACKEND_LOSS_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Cases for the losses, and for what counts answers that are right.
std::vector<OpCase> LossCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOSS_CASES_H_
