#ifndef TANDEM_TESTS_GOLDEN_ACTIVATIONS_H_
#define TANDEM_TESTS_GOLDEN_ACTIVATIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "tests/golden/golden_case.h"

namespace tandem {

// Appends the function of one element, or the softmax, that PyTorch calls `type`; kNoValue where it is none.
absl::StatusOr<ValueId> AddGoldenActivation(Graph& graph, const std::string& type, Attributes& attributes,
                                            ValueId input);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_ACTIVATIONS_H_
