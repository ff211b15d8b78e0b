#ifndef TANDEM_ENGINE_BACKEND_DATA_CASES_H_
#define TANDEM_ENGINE_BACKEND_DATA_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns the cases of ops that gather batches on the device and change images. A part of OpCases.
std::vector<OpCase> DataCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DATA_CASES_H_
