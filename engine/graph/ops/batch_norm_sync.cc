#include "engine/graph/ops/batch_norm_sync.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::Status CheckMoments(const Op& op, absl::Span<const TensorType> inputs, const Shape& moments,
                          int64_t channels) {
  if (moments.rank() == 2 && moments[0] >= 1 && moments[1] == 2 * channels + 1) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("moments must be [replicas, ", 2 * channels + 1, "]"));
}

}  // namespace

std::string BatchNormMomentsOp::attributes() const {
  return absl::StrCat("rank=", rank, " replicas=", replicas);
}

absl::StatusOr<std::vector<TensorType>> BatchNormMomentsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(*this, inputs, 1, 1, 0));
  if (rank < 0 || rank >= replicas) {
    return InputError(*this, inputs, absl::StrCat("rank is ", rank, " of ", replicas));
  }
  return std::vector<TensorType>{{inputs[0].dtype, Shape({replicas, 2 * inputs[0].shape[1] + 1})}};
}

OpCost BatchNormMomentsOp::Cost(absl::Span<const TensorType> inputs,
                                absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 4, inputs);
}

std::string BatchNormSyncOp::attributes() const {
  return absl::StrCat("momentum=", momentum, " epsilon=", epsilon, " share=", share);
}

absl::StatusOr<std::vector<TensorType>> BatchNormSyncOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(*this, inputs, 6, 1, 4));
  TANDEM_RETURN_IF_ERROR(CheckMoments(*this, inputs, inputs[5].shape, inputs[0].shape[1]));
  TANDEM_RETURN_IF_ERROR(CheckMomentum(*this, inputs, momentum));
  TANDEM_RETURN_IF_ERROR(CheckEpsilon(*this, inputs, epsilon));
  if (!(share > 0 && share <= 1)) {
    return InputError(*this, inputs, absl::StrCat("share is ", share, ", but must be in (0, 1]"));
  }
  return std::vector<TensorType>{inputs[0], inputs[1], inputs[1]};
}

absl::StatusOr<std::vector<ValueId>> BatchNormSyncOp::Gradient(Graph& graph, const Node& node,
                                                               absl::Span<const ValueId> grad_outputs,
                                                               const std::vector<bool>& wanted) const {
  if (grad_outputs[1] != kNoValue || grad_outputs[2] != kNoValue) {
    return absl::UnimplementedError("batch_norm_sync: the gradient of its statistics");
  }
  const ValueId x = node.inputs[0], weight = node.inputs[1], grad_y = grad_outputs[0];
  const ValueId mean = node.outputs[1], inv_std = node.outputs[2];
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> own,
                          graph.AddNode(std::make_shared<BatchNormSumsOp>(), {x, grad_y, mean, inv_std}));
  std::vector<ValueId> grads(wanted.size(), kNoValue);
  if (wanted[1]) grads[1] = own[0];
  if (wanted[2]) grads[2] = own[1];
  if (!wanted[0]) return grads;
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> all,
      graph.AddNode(std::make_shared<AllReduceOp>(share, CountAllReduces(graph), 2), own));
  TANDEM_ASSIGN_OR_RETURN(grads[0], graph.Add(std::make_shared<BatchNormSyncGradOp>(),
                                              {x, grad_y, weight, mean, inv_std, all[0], all[1]}));
  return grads;
}

OpCost BatchNormSyncOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 2, inputs);
}

std::string BatchNormRunningOp::attributes() const { return absl::StrCat("momentum=", momentum); }

absl::StatusOr<std::vector<TensorType>> BatchNormRunningOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckMoments(*this, inputs, inputs[0].shape, inputs[1].shape[0]));
  TANDEM_RETURN_IF_ERROR(CheckMomentum(*this, inputs, momentum));
  if (inputs[2].shape != inputs[1].shape) {
    return InputError(*this, inputs, "running_mean and running_var must have one shape");
  }
  return std::vector<TensorType>();
}

absl::StatusOr<std::vector<TensorType>> BatchNormSumsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(*this, inputs, 4, 2, 3));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, inputs[0].shape));
  return std::vector<TensorType>{inputs[2], inputs[2]};
}

OpCost BatchNormSumsOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 4, inputs);
}

absl::StatusOr<std::vector<TensorType>> BatchNormSyncGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(*this, inputs, 7, 2, 6));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, inputs[0].shape));
  return std::vector<TensorType>{inputs[0]};
}

OpCost BatchNormSyncGradOp::Cost(absl::Span<const TensorType> inputs,
                                 absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 5, inputs);
}

}  // namespace tandem
