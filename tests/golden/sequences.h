#ifndef TANDEM_TESTS_GOLDEN_SEQUENCES_H_
#define TANDEM_TESTS_GOLDEN_SEQUENCES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tests/golden/golden_case.h"

namespace tandem {

// Appends an operation on sequences: embedding, layer_norm, lstm, attention. kNoValue for any other `type`.
// `weights` are in PyTorch's order. Further outputs are added to `others` by name, unless it is null. Errors
// are those of AddOperation.
absl::StatusOr<ValueId> AddGoldenSequence(Graph& graph, const std::string& type, Attributes& attributes,
                                          const nlohmann::json& attrs, absl::Span<const ValueId> inputs,
                                          absl::Span<const ValueId> weights,
                                          std::map<std::string, ValueId>* others);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_SEQUENCES_H_
