#include "engine/graph/ops/reshape.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string ReshapeOp::attributes() const { return absl::StrCat("shape=", shape.ToString()); }

absl::StatusOr<std::vector<TensorType>> ReshapeOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  for (const int64_t extent : shape.extents()) {
    if (extent < 1) {
      return InputError(*this, inputs,
                        absl::StrCat("the new shape ", shape.ToString(), " has an extent below 1"));
    }
  }
  if (shape.elements() != inputs[0].shape.elements()) {
    return InputError(*this, inputs,
                      absl::StrCat("the new shape ", shape.ToString(), " has ", shape.elements(),
                                   " elements, the input ", inputs[0].shape.elements()));
  }
  return std::vector<TensorType>{{inputs[0].dtype, shape}};
}

absl::StatusOr<std::vector<ValueId>> ReshapeOp::Gradient(Graph& graph, const Node& node,
                                                         absl::Span<const ValueId> grad_outputs,
                                                         const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<ReshapeOp>(graph.value(node.inputs[0]).shape),
                         {grad_outputs[0]});
}

OpCost ReshapeOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

}  // namespace tandem
