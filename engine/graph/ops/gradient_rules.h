#ifndef TANDEM_ENGINE_GRAPH_OPS_GRADIENT_RULES_H_
#define TANDEM_ENGINE_GRAPH_OPS_GRADIENT_RULES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/op.h"

namespace tandem {

class Graph;

// Steps that the gradient rules of ops share. `wanted` is the argument of Op::Gradient.

// Appends `op` with `inputs`, an op with a single output: the gradient of input 0. Returns a value for each
// input, kNoValue for all inputs but input 0. Appends nothing if the gradient of input 0 is not wanted.
// Errors as Graph::Add.
absl::StatusOr<std::vector<ValueId>> GradientOfFirst(Graph& graph, const std::vector<bool>& wanted,
                                                     std::shared_ptr<const Op> op,
                                                     std::vector<ValueId> inputs);

// Returns the gradients of the first inputs with kNoValue for each unwanted gradient and each other input.
std::vector<ValueId> WantedOnly(std::vector<ValueId> grads, const std::vector<bool>& wanted);

// Returns `grad`, the gradient of `output`. Returns a constant of zeros with the output's type if `grad` is
// kNoValue.
ValueId OrZeros(Graph& graph, ValueId grad, ValueId output);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_GRADIENT_RULES_H_
