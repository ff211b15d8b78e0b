#ifndef TANDEM_ENGINE_BACKEND_LAYER_CASES_H_
#define TANDEM_ENGINE_BACKEND_LAYER_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns the cases of activations, group normalisations, and ops that join, cut or resize tensors. A part of
// OpCases.
std::vector<OpCase> LayerCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LAYER_CASES_H_
