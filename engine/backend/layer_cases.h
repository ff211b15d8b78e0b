#ifndef TANDEM_ENGINE_BACKEND_LAYER_CASES_H_
#define TANDEM_ENGINE_BACKEND_LAYER_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Cases of functions of one element, normalisations by group, and what puts tensors together, cuts and
// resizes them; a part of OpCases.
std::vector<OpCase> LayerCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LAYER_CASES_H_
