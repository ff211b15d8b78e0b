#ifndef TANDEM_TESTS_GOLDEN_ACTIVATIONS_H_
#define TANDEM_TESTS_GOLDEN_ACTIVATIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "tests/golden/golden_case.h"

namespace tandem {

// Appends the element-wise function or the softmax with PyTorch's name `type`. kNoValue if there is none.
absl::StatusOr<ValueId> AddGoldenActivation(Graph& graph, const std::string& type, Attributes& attributes,
                                            ValueId input);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_ACTIVATIONS_H_
