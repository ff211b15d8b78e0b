#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_GRADIENT_CHECK_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_GRADIENT_CHECK_H_

#include <functional>
#include <ostream>
#include <string>

#include "engine/backend/op_cases.h"

namespace tandem {

// A case: `build` returns a value, which is differentiated by its floating-point inputs.
struct GradientCase {
  std::string name;
  std::function<ValueId(CaseGraph& graph)> build;
};

inline void PrintTo(const GradientCase& gradient_case, std::ostream* out) { *out << gradient_case.name; }

// Checks the gradient rules of the case's ops, on the oracle, against central differences: for a projection
// of the value, (L(x + h) - L(x - h)) / 2h of each element. Fails the test if they differ.
void ExpectGradientIsWhatDifferencesSay(const GradientCase& gradient_case);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_GRADIENT_CHECK_H_
