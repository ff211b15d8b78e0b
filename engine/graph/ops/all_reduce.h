#ifndef TANDEM_ENGINE_GRAPH_OPS_ALL_REDUCE_H_
#define TANDEM_ENGINE_GRAPH_OPS_ALL_REDUCE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

class Graph;

// all_reduce(g_0, ..., g_k) -> r_0, ..., r_k, all with the same floating-point type. r_i is the sum of scale
// g_i over the replicas. Each replica has its own scale. Without a communicator r_i = scale g_i. The graphs
// of all replicas must have the same all_reduce ops over the same shapes in the same order. Not
// differentiable.
class AllReduceOp final : public Op {
 public:
  AllReduceOp(double scale, int bucket, int count) : scale(scale), bucket(bucket), count(count) {}
  absl::string_view kind() const override { return "all_reduce"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override;

  double scale;  // This replica's share of the batch.
  int bucket;    // The position among the graph's all_reduce ops, from 0, in running order.
  int count;     // The number of tensors.
};

// Returns the number of all_reduce ops in a graph, so the `bucket` of the next op.
int CountAllReduces(const Graph& graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ALL_REDUCE_H_
