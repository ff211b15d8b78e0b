#ifndef TANDEM_ENGINE_BACKEND_SEQUENCE_CASES_H_
#define TANDEM_ENGINE_BACKEND_SEQUENCE_CASES_H_

#include <vector>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns the cases of ops on sequences. A part of OpCases.
std::vector<OpCase> SequenceCases();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_SEQUENCE_CASES_H_
