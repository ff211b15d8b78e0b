#ifndef TANDEM_TESTS_GOLDEN_SHAPING_H_
#define TANDEM_TESTS_GOLDEN_SHAPING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace tandem {

// Appends PyTorch's operation `type` if it joins, cuts, reshapes or resizes tensors. kNoValue for any other
// type.
absl::StatusOr<ValueId> AddGoldenShaping(Graph& graph, const std::string& type, Attributes& attributes,
                                         const nlohmann::json& attrs, absl::Span<const ValueId> inputs);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_SHAPING_H_
