#ifndef TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_SYNC_H_
#define TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_SYNC_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Batch normalisation over the samples of all replicas: as batch_norm.h, where what each knows of its own
// samples x [N, C, ...] goes through all_reduce ops in between.
//
//   forward:   batch_norm_moments -> all_reduce of scale 1 -> batch_norm_sync
//   backward:  batch_norm_sums -> all_reduce of the replica's share of the samples -> batch_norm_sync_grad

// batch_norm_moments(x) -> moments [replicas, 2 C + 1], of which row `rank` has the number of values a
// channel, the channels' means, and their sums of squares about these; the other rows are 0. Summed over the
// replicas it has what each of them knows, exactly.
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
// y, mean [C], inv_std [C], as batch_norm with the mean and the variance that the moments of all replicas
// give (Chan et al. 1979), added in the order of ranks. The gradient of x has in it what goes through the
// moments; `share` is the replica's of the samples of all, which is what its loss counts by.
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

// batch_norm_running(moments [replicas, 2 C + 1], running_mean [C], running_var [C]), no outputs: the running
// statistics change as batch_norm_sync changes them, in a replica that has no samples.
class BatchNormRunningOp final : public Op {
 public:
  explicit BatchNormRunningOp(double momentum) : momentum(momentum) {}
  absl::string_view kind() const override { return "batch_norm_running"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {1, 2}; }

  double momentum;
};

// batch_norm_sums(x, grad_y, mean [C], inv_std [C]) -> grad_weight [C], grad_bias [C]: the sums of
// grad_y (x - mean) inv_std and of grad_y.
class BatchNormSumsOp final : public Op {
 public:
  absl::string_view kind() const override { return "batch_norm_sums"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// batch_norm_sync_grad(x, grad_y, weight [C], mean [C], inv_std [C], products [C], sums [C]) -> grad_x
// = weight inv_std (grad_y - (sums + (x - mean) inv_std products) / n), where products and sums are those of
// batch_norm_sums over all replicas, each weighted by its share, and n is the number of this replica's values
// a channel: its share of all of them, which the replica's gradients are yet to be multiplied by.
class BatchNormSyncGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "batch_norm_sync_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_SYNC_H_
