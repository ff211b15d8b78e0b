#ifndef TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_SYNC_H_
#define TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_SYNC_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Batch normalisation over the samples of all replicas. all_reduce ops exchange the statistics of each
// replica's samples x [N, C, ...]. See batch_norm.h for the formulas.
//
//   forward:   batch_norm_moments -> all_reduce with scale 1 -> batch_norm_sync
//   backward:  batch_norm_sums -> all_reduce with the replica's share of the samples -> batch_norm_sync_grad

// batch_norm_moments(x) -> moments [replicas, 2 C + 1]. Row `rank` has the number of values of a channel, the
// means of the channels, and their sums of squared differences from the mean. All other rows are 0, so the
// sum over the replicas has the exact row of each replica.
class BatchNormMomentsOp final : public Op {
 public:
  BatchNormMomentsOp(int rank, int replicas) : rank(rank), replicas(replicas) {}
  absl::string_view kind() const override { return "batch_norm_moments"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int rank;
  int replicas;
};

// batch_norm_sync(x, weight [C], bias [C], running_mean [C], running_var [C], moments [replicas, 2 C + 1]) ->
// y, mean [C], inv_std [C]: as batch_norm. Mean and variance follow from the moments of all replicas, added
// in the order of ranks (Chan et al. 1979). The gradient of x includes the path through the moments. `share`
// is the replica's share of all samples, and so the weight of its loss.
class BatchNormSyncOp final : public Op {
 public:
  BatchNormSyncOp(double momentum, double epsilon, double share)
      : momentum(momentum), epsilon(epsilon), share(share) {}
  absl::string_view kind() const override { return "batch_norm_sync"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<int> MutatedInputs() const override { return {3, 4}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double momentum;
  double epsilon;
  double share;
};

// batch_norm_running(moments [replicas, 2 C + 1], running_mean [C], running_var [C]), no outputs: changes the
// running statistics as batch_norm_sync does. For a replica without samples.
class BatchNormRunningOp final : public Op {
 public:
  explicit BatchNormRunningOp(double momentum) : momentum(momentum) {}
  absl::string_view kind() const override { return "batch_norm_running"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {1, 2}; }

  double momentum;
};

// batch_norm_sums(x, grad_y, mean [C], inv_std [C]) -> grad_weight [C], grad_bias [C]: the sum of grad_y (x -
// mean) inv_std, and the sum of grad_y.
class BatchNormSumsOp final : public Op {
 public:
  absl::string_view kind() const override { return "batch_norm_sums"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// batch_norm_sync_grad(x, grad_y, weight [C], mean [C], inv_std [C], products [C], sums [C]) -> grad_x
//
//   = weight inv_std (grad_y - (sums + (x - mean) inv_std products) / n)
//
// products and sums are the outputs of batch_norm_sums, weighted by share and added over all replicas. n is
// the number of this replica's values of a channel. The later weighting of the replica's gradients by its
// share makes it exact.
class BatchNormSyncGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "batch_norm_sync_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_SYNC_H_
