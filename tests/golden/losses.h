#ifndef TANDEM_TESTS_GOLDEN_LOSSES_H_
#define TANDEM_TESTS_GOLDEN_LOSSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace tandem {

// The operands of a loss, and PyTorch's weights, which are constants.
struct GoldenLoss {
  ValueId input = kNoValue;             // For cosine_embedding, pairs: [samples, 2, size].
  ValueId target = kNoValue;            // Classes are int32, one for each row of [..., classes].
  Tensor target_values;                 // The target's values.
  std::vector<double> weight = {};      // For classes, or for all elements. Empty: none.
  std::vector<double> pos_weight = {};  // For all elements. Empty: none.
};

// Appends the loss with PyTorch's settings `attrs`, a scalar. UNIMPLEMENTED for a type or a setting that the
// engine does not offer. INVALID_ARGUMENT for an unknown setting or a target that is not a class.
absl::StatusOr<ValueId> AddLoss(Graph& graph, const nlohmann::json& attrs, const GoldenLoss& loss);

// Returns whether the loss takes rows with a score for each class.
bool IsOfClasses(const nlohmann::json& attrs);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_LOSSES_H_
