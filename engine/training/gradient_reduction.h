#ifndef TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_
#define TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The prefixes of the variables of compression. "compression/error/<parameter>" is a replica's own: the part
// of its gradients that it has not sent yet. "compression/start/<parameter>" is the factor of the last step,
// with which the next step begins. All variables are zero before the first step.
inline constexpr char kCompressionErrorPrefix[] = "compression/error/";
inline constexpr char kCompressionStartPrefix[] = "compression/start/";
// Returns whether a variable belongs to compression.
inline bool IsOfCompression(absl::string_view variable) { return absl::StartsWith(variable, "compression/"); }

// Reduces gradients in buckets, the last layers' gradients first. A bucket takes gradients up to its size in
// bytes. The first bucket may be small, so that the reduction begins early in the backward pass (Li et al.
// 2020, "PyTorch Distributed").
//
// The all-reduce of a bucket enters the graph as soon as its gradients exist. An executable begins the
// reduction there, and awaits it before the first node that reads the result. Over a network and on GPUs, the
// reduction overlaps the gradients of earlier layers. Threads of a single process on CPUs add up begun
// buckets whenever they reach the next call, and block at the await alone. Buckets and their order depend on
// the parameters alone, so they are equal in all replicas.
//
// With compression, a matrix M is reduced as PowerSGD does (Vogels et al. 2019, algorithm 1), with the factor
// Q of the last step:
//
//   M = error + gradient        each replica its own
//   P = all-reduce of M Q       with the bucket; then its columns become orthonormal
//   Q = all-reduce of M^T P     after the next bucket has begun, so that P's reduction overlaps too
//   error = M - P (M^T P)^T     each replica its own M^T P
//   gradient = P Q^T            after all buckets
//
// The errors' sum is the difference between the sum of M and the gradient. A replica does not subtract the
// common gradient, because its own difference from the other replicas would then pile up in its error.
//
// If M has more rows than columns, M^T takes its place, so that the orthonormal factor is the smaller one.
class GradientReduction {
 public:
  // Gradients become the sum over replicas of `scale` times the gradient. `parameters` are those of
  // `graph`, in the order of the layers. `graph` must outlive this object. `settings` has its defaults.
  GradientReduction(Graph* graph, double scale, absl::Span<const ValueId> parameters,
                    const v1::AllReduce& settings);

  // Adds the gradient of a parameter, by its position. Call it for each parameter, in any order.
  absl::Status Add(size_t parameter, ValueId gradient);

  // Returns the reduced gradients, by parameter. Valid after all gradients were added.
  const std::vector<ValueId>& reduced() const { return reduced_; }

 private:
  // A gradient that is reduced by its factors.
  struct Factored {
    size_t parameter = 0;
    bool tall = false;         // Whether the matrix has more rows than columns.
    ValueId error = kNoValue;  // M, until Q is reduced.
    ValueId start = kNoValue;
    ValueId basis = kNoValue;  // P, reduced.
    ValueId other = kNoValue;  // Q, reduced.
  };
  // Parameters from begin to before end.
  struct Bucket {
    size_t begin = 0;
    size_t end = 0;
    std::vector<Factored> factored;
  };

  // Reduces the gradients of the bucket, or their factors P.
  absl::Status Reduce(Bucket& bucket);
  // Reduces the factors Q of the bucket, and computes the errors.
  absl::Status ReduceOthers(Bucket& bucket);
  // Computes the gradients of the bucket from their factors.
  absl::Status Restore(const Bucket& bucket);
  // Adds the error's variable with the gradient added, and the product P.
  absl::StatusOr<Factored> Factor(size_t parameter);
  absl::StatusOr<std::vector<ValueId>> AddAllReduce(std::vector<ValueId> inputs);

  Graph* const graph_;
  const double scale_;
  const int64_t rank_;  // 0: no compression.
  const std::vector<ValueId> parameters_;
  std::vector<Bucket> buckets_;     // In the order of their reductions.
  size_t next_ = 0;                 // The first bucket that is not reduced yet.
  std::vector<ValueId> gradients_;  // By parameter. kNoValue if missing.
  std::vector<ValueId> reduced_;
};

// Returns whether a gradient of this shape is sent as two factors of this rank: their numbers are at most
// half of the gradient's.
bool IsCompressed(const Shape& gradient, int64_t rank);

// Returns the numbers that a replica gives to the all-reduces of a step, for gradients of this shape.
int64_t NumbersToReduce(const Shape& gradient, int64_t rank);

// Returns the sum of `value`, a scalar, over `replicas` replicas that reduce together. With one replica, that
// is `value`.
absl::StatusOr<ValueId> AddTotal(ValueId value, int replicas, Graph* graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_GRADIENT_REDUCTION_H_
