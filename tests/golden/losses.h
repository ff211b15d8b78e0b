#ifndef TANDEM_TESTS_GOLDEN_LOSSES_H_
#define TANDEM_TESTS_GOLDEN_LOSSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace tandem {

// What a loss compares, and PyTorch's weights for it, which are constants.
struct GoldenLoss {
  ValueId input = kNoValue;             // Of pairs, for cosine_embedding: [samples, 2, size].
  ValueId target = kNoValue;            // Classes are int32, one a row of [..., classes].
  Tensor target_values;                 // All that the target will ever be.
  std::vector<double> weight = {};      // Of classes, or of all elements; empty: none.
  std::vector<double> pos_weight = {};  // Of all elements; empty: none.
};

// Appends the loss that `attrs` describes by PyTorch's settings, a scalar. UNIMPLEMENTED for a type or a
// setting that the engine does not offer, INVALID_ARGUMENT for a setting that is not understood or a target
// that is no class.
absl::StatusOr<ValueId> AddLoss(Graph& graph, const nlohmann::json& attrs, const GoldenLoss& loss);

// Whether the loss that `attrs` describes is of rows of scores of classes.
bool IsOfClasses(const nlohmann::json& attrs);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_LOSSES_H_
