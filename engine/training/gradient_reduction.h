#ifndef TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_
#define TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Reduces gradients in buckets, the last layers' gradients first. A bucket takes gradients up to its size in
// bytes. The first bucket may be small, so that the reduction begins early in the backward pass (Li et al.
// 2020, "PyTorch Distributed").
//
// The all-reduce of a bucket enters the graph as soon as its gradients exist. An executable begins the
// reduction there, and awaits it before the first node that reads the result. Over a network and on GPUs, the
// reduction overlaps the gradients of earlier layers. Threads of a single process on CPUs add up begun
// buckets whenever they reach the next call, and block at the await alone. Buckets and their order depend on
// the parameters alone, so they are equal in all replicas.
class GradientReduction {
 public:
  // Gradients become the sum over replicas of `scale` times the gradient. `parameters` are those of `graph`,
  // in the order of the layers. `graph` must outlive this object. `buckets` has its defaults.
  GradientReduction(Graph* graph, double scale, absl::Span<const ValueId> parameters,
                    const v1::AllReduce& buckets);

  // Adds the gradient of a parameter, by its position. Call it for each parameter, in any order.
  absl::Status Add(size_t parameter, ValueId gradient);

  // Returns the reduced gradients, by parameter. Valid after all gradients were added.
  const std::vector<ValueId>& reduced() const { return reduced_; }

 private:
  // Parameters from begin to before end.
  struct Bucket {
    size_t begin = 0;
    size_t end = 0;
  };

  Graph* const graph_;
  const double scale_;
  std::vector<Bucket> buckets_;     // In the order of their reductions.
  size_t next_ = 0;                 // The first bucket that is not reduced yet.
  std::vector<ValueId> gradients_;  // By parameter. kNoValue if missing.
  std::vector<ValueId> reduced_;
};

// Returns the sum of `value`, a scalar, over `replicas` replicas that reduce together. With one replica, that
// is `value`.
absl::StatusOr<ValueId> AddTotal(ValueId value, int replicas, Graph* graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_
