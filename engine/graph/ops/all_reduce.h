#ifndef TANDEM_ENGINE_GRAPH_OPS_ALL_REDUCE_H_
#define TANDEM_ENGINE_GRAPH_OPS_ALL_REDUCE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

class Graph;

// all_reduce(g_0, ..., g_k) -> r_0, ..., r_k, of the same types, all floating-point and all of one: r_i is
// the sum over the replicas of their scale times their g_i. One replica (a null communicator) has scale g_i.
// All replicas' graphs have the same all_reduce ops over the same shapes in the same order. Not
// differentiable.
class AllReduceOp final : public Op {
 public:
  AllReduceOp(double scale, int bucket, int count) : scale(scale), bucket(bucket), count(count) {}
  absl::string_view kind() const override { return "all_reduce"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override;

  double scale;  // This replica's share of the batch.
  int bucket;    // Which of the graph's all_reduce ops this is, from 0, in the order in which they run.
  int count;     // How many tensors it reduces.
};

// How many all_reduce ops a graph has: the `bucket` of the next.
int CountAllReduces(const Graph& graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ALL_REDUCE_H_
