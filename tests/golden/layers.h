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

// Converts PyTorch's settings to the engine's ops. All functions return UNIMPLEMENTED for a type or a setting
// that the engine does not offer, and INVALID_ARGUMENT for an unknown setting.

// Appends the operation with the settings `attrs`. `inputs` are its data inputs, `weights` its parameters in
// PyTorch's order. Further outputs are added to `others` by name, unless it is null.
absl::StatusOr<ValueId> AddOperation(Graph& graph, const nlohmann::json& attrs,
                                     absl::Span<const ValueId> inputs, absl::Span<const ValueId> weights,
                                     std::map<std::string, ValueId>* others = nullptr);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_LAYERS_H_
