#include "engine/graph/ops/pad.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

absl::Status CheckMargins(const Op& op, absl::Span<const TensorType> inputs, const Margins& margins) {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(op, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckRank(op, inputs, 0, 4));
  for (const int64_t margin : {margins.before.h, margins.before.w, margins.after.h, margins.after.w}) {
    if (margin >= 0 && margin <= kLargest) continue;
    return InputError(op, inputs, absl::StrCat("a margin is ", margin, "; it must be from 0 to ", kLargest));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Margins::ToString() const {
  return absl::StrCat("before=", before.ToString(), " after=", after.ToString());
}

absl::StatusOr<std::vector<TensorType>> Pad2dOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckMargins(*this, inputs, margins));
  const Shape& x = inputs[0].shape;
  return std::vector<TensorType>{
      {inputs[0].dtype, Shape({x[0], x[1], x[2] + margins.before.h + margins.after.h,
                               x[3] + margins.before.w + margins.after.w})}};
}

absl::StatusOr<std::vector<ValueId>> Pad2dOp::Gradient(Graph& graph, const Node& /*node*/,
                                                       absl::Span<const ValueId> grad_outputs,
                                                       const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<Crop2dOp>(margins), {grad_outputs[0]});
}

OpCost Pad2dOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

absl::StatusOr<std::vector<TensorType>> Crop2dOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckMargins(*this, inputs, margins));
  const Shape& x = inputs[0].shape;
  const Size2d rest = {x[2] - margins.before.h - margins.after.h, x[3] - margins.before.w - margins.after.w};
  if (rest.h < 1 || rest.w < 1) return InputError(*this, inputs, "nothing is left of the image");
  return std::vector<TensorType>{{inputs[0].dtype, Shape({x[0], x[1], rest.h, rest.w})}};
}

absl::StatusOr<std::vector<ValueId>> Crop2dOp::Gradient(Graph& graph, const Node& /*node*/,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<Pad2dOp>(margins), {grad_outputs[0]});
}

OpCost Crop2dOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

}  // namespace tandem
