#ifndef TANDEM_TESTS_GOLDEN_OPTIMIZERS_H_
#define TANDEM_TESTS_GOLDEN_OPTIMIZERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "nlohmann/json.hpp"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Converts PyTorch's settings of an optimizer to the API's message. UNIMPLEMENTED for a type or a setting
// that the engine does not offer. INVALID_ARGUMENT for an unknown setting.
absl::StatusOr<v1::Optimizer> ReadOptimizer(const nlohmann::json& attrs);

// Appends a step of the optimizer, with its own state, for each parameter. Declares the inputs learning_rate
// and step.
absl::Status AddOptimizer(Graph& graph, const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                          absl::Span<const ValueId> grads);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_OPTIMIZERS_H_
