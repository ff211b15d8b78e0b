#ifndef TANDEM_TESTS_GOLDEN_SHAPING_H_
#define TANDEM_TESTS_GOLDEN_SHAPING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace tandem {

// Appends what PyTorch calls `type`, if it puts tensors together, cuts, reshapes or resizes them; kNoValue
// where it does not.
absl::StatusOr<ValueId> AddGoldenShaping(Graph& graph, const std::string& type, Attributes& attributes,
                                         const nlohmann::json& attrs, absl::Span<const ValueId> inputs);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_SHAPING_H_
