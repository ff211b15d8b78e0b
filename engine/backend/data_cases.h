#ifndef TANDEM_ENGINE_BACKEND_DATA_CASES_H_
#define TANDEM_ENGINE_BACKEND_DATA_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Cases of what makes batches of a data set on a device, and changes their images; a part of OpCases.
std::vector<OpCase> DataCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DATA_CASES_H_
