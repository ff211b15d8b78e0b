#include "engine/graph/ops/dropout.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// The generator's ten rounds of two multiplications and three exclusive ors give four words.
constexpr double kFlopsPerElement = 14;

}  // namespace

std::string DropoutOp::attributes() const {
  return absl::StrCat("rate=", rate, " seed=", seed, " first_sample=", first_sample);
}

absl::StatusOr<std::vector<TensorType>> DropoutOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(*this, inputs, 0, 1));
  TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, 1, {DType::kInt64, Shape()}, "the step"));
  if (!(rate >= 0 && rate < 1)) {
    return InputError(*this, inputs, absl::StrCat("rate is ", rate, ", but must be from 0 to below 1"));
  }
  if (first_sample < 0) {
    return InputError(*this, inputs,
                      absl::StrCat("first_sample is ", first_sample, ", but must be at least 0"));
  }
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> DropoutOp::Gradient(Graph& graph, const Node& node,
                                                         absl::Span<const ValueId> grad_outputs,
                                                         const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<DropoutOp>(rate, seed, first_sample),
                         {grad_outputs[0], node.inputs[1]});
}

OpCost DropoutOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kFlopsPerElement, inputs);
}

uint64_t DropoutOp::threshold() const { return static_cast<uint64_t>(std::llround(rate * 0x1p32)); }

}  // namespace tandem
