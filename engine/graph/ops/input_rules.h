#ifndef TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_
#define TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/op.h"

namespace tandem {

// Checks that the shape rules of ops share. Errors are INVALID_ARGUMENT and show the kind and all input
// types.

// Returns the error "conv2d(float32[1, 2], float32[3]): `why`".
absl::Status InputError(const Op& op, absl::Span<const TensorType> inputs, absl::string_view why);

// Checks that there are `least` to `most` inputs.
absl::Status CheckInputCount(const Op& op, absl::Span<const TensorType> inputs, size_t least, size_t most);

// Checks that inputs `first` to `last`, both included, share a floating-point type.
absl::Status CheckOneFloatingType(const Op& op, absl::Span<const TensorType> inputs, size_t first,
                                  size_t last);

// Checks that input `i` has `rank` dimensions.
absl::Status CheckRank(const Op& op, absl::Span<const TensorType> inputs, size_t i, int rank);

// Returns the type of a sum over a batch: float64 for float64, else float32.
DType SumType(DType dtype);

// Returns `cost` with `flops_per_element` for each element of `tensors[0]` as its flops.
OpCost WithFlops(OpCost cost, double flops_per_element, absl::Span<const TensorType> tensors);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_
