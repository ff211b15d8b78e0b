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

// Gradients are reduced together in buckets, the last layers' first: a bucket takes gradients until it has so
// many bytes. The first one may be small, so that the reduction begins early in the backward pass (Li et al.
// 2020, "PyTorch Distributed").
// Puts the all-reduce of each bucket into a graph as soon as its gradients are there: an executable begins it
// there, and awaits it before the first node that reads what is reduced. Over a network, and on GPUs, it goes
// on while those of the layers before are computed; threads of one process on CPUs add up what all have
// begun when they come by, and wait for each other at the await alone. Which gradients share a bucket, and
// the order of the buckets, follow from the parameters alone: they are the same in every replica, whatever
// its samples.
class GradientReduction {
 public:
  // Gradients become the sum over replicas of `scale` times them. `parameters` are those of `graph`, which
  // outlives it, in the order of the layers. `buckets` has its defaults.
  GradientReduction(Graph* graph, double scale, absl::Span<const ValueId> parameters,
                    const v1::AllReduce& buckets);

  // The gradient of a parameter, by its position; once for each, in any order.
  absl::Status Add(size_t parameter, ValueId gradient);

  // The reduced gradients, by parameter. After all were added.
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
  size_t next_ = 0;                 // The first that is not reduced yet.
  std::vector<ValueId> gradients_;  // By parameter; kNoValue for those that are not there yet.
  std::vector<ValueId> reduced_;
};

// Returns the sum of `value`, a scalar, over `replicas` replicas that reduce together. With one replica, that
// is `value`.
absl::StatusOr<ValueId> AddTotal(ValueId value, int replicas, Graph* graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_
