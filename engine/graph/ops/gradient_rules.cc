#include "engine/graph/ops/gradient_rules.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"

namespace tandem {

absl::StatusOr<std::vector<ValueId>> GradientOfFirst(Graph& graph, const std::vector<bool>& wanted,
                                                     std::shared_ptr<const Op> op,
                                                     std::vector<ValueId> inputs) {
  std::vector<ValueId> grads(wanted.size(), kNoValue);
  if (!wanted[0]) return grads;
  TANDEM_ASSIGN_OR_RETURN(grads[0], graph.Add(std::move(op), std::move(inputs)));
  return grads;
}

std::vector<ValueId> WantedOnly(std::vector<ValueId> grads, const std::vector<bool>& wanted) {
  grads.resize(wanted.size(), kNoValue);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!wanted[i]) grads[i] = kNoValue;
  }
  return grads;
}

ValueId OrZeros(Graph& graph, ValueId grad, ValueId output) {
  if (grad != kNoValue) return grad;
  const Value& value = graph.value(output);
  return graph.AddConstant(0, value.dtype, value.shape);
}

}  // namespace tandem
