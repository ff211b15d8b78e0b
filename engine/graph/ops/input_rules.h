#ifndef TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_
#define TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/op.h"

namespace tandem {

// What the shape rules of ops have in common. Errors are INVALID_ARGUMENT and show the kind and the types of
// all inputs.

// "conv2d(float32[1, 2], float32[3]): `why`".
absl::Status InputError(const Op& op, absl::Span<const TensorType> inputs, absl::string_view why);

// That there are from `least` to `most` inputs.
absl::Status CheckInputCount(const Op& op, absl::Span<const TensorType> inputs, size_t least, size_t most);

// That inputs `first` to `last`, this one too, are all of one floating-point type.
absl::Status CheckOneFloatingType(const Op& op, absl::Span<const TensorType> inputs, size_t first,
                                  size_t last);

// That input `i` has `rank` dimensions.
absl::Status CheckRank(const Op& op, absl::Span<const TensorType> inputs, size_t i, int rank);

// The type of a sum over a batch: float64 for float64, float32 for all else.
DType SumType(DType dtype);

// `cost` with the operations of an op that takes `flops_per_element` for each element of input 0.
OpCost WithFlops(OpCost cost, double flops_per_element, absl::Span<const TensorType> inputs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_
