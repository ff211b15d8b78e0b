#ifndef TANDEM_TESTS_GOLDEN_LAYERS_H_
#define TANDEM_TESTS_GOLDEN_LAYERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "nlohmann/json.hpp"

namespace tandem {

// PyTorch's settings to the engine's ops. All return UNIMPLEMENTED for a type or a setting that the engine
// does not offer yet, and INVALID_ARGUMENT for a setting that is not understood.

// Appends the operation that `attrs` describes. `inputs` are its data inputs, `weights` its parameters in
// PyTorch's order. Further outputs that a case may hold go to `others`, by name, unless it is null.
absl::StatusOr<ValueId> AddOperation(Graph& graph, const nlohmann::json& attrs,
                                     absl::Span<const ValueId> inputs, absl::Span<const ValueId> weights,
                                     std::map<std::string, ValueId>* others = nullptr);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_LAYERS_H_
