#ifndef TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_
#define TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// Checks that input `i` has at least `least` dimensions.
absl::Status CheckLeastRank(const Op& op, absl::Span<const TensorType> inputs, size_t i, int least);

// Checks that input `i` has this shape.
absl::Status CheckShape(const Op& op, absl::Span<const TensorType> inputs, size_t i, const Shape& shape);

// Checks that input `i`, called `name` in the error, has this type.
absl::Status CheckType(const Op& op, absl::Span<const TensorType> inputs, size_t i, const TensorType& type,
                       absl::string_view name);

// Checks that input 2, the gradient of a loss of the numbers of input 0, is one number of their sum's type.
absl::Status CheckLossGradient(const Op& op, absl::Span<const TensorType> inputs);

// Checks that input 0 has the dimension `axis`, from 0.
absl::Status CheckAxis(const Op& op, absl::Span<const TensorType> inputs, int axis);

// Checks for `count` inputs with a single floating-point type. Input 0 must be [N, C, ...], inputs `first` to
// `last`, both included, [C].
absl::Status CheckChannelInputs(const Op& op, absl::Span<const TensorType> inputs, size_t count, size_t first,
                                size_t last);

// Checks that `momentum`, the part of new running statistics, is from 0 to 1.
absl::Status CheckMomentum(const Op& op, absl::Span<const TensorType> inputs, double momentum);

// Checks that `epsilon`, an attribute, is finite and at least 0.
absl::Status CheckEpsilon(const Op& op, absl::Span<const TensorType> inputs, double epsilon);

// Returns the type of input 0 after a check that there are `count` inputs, all with this floating-point type
// and shape.
absl::StatusOr<std::vector<TensorType>> InferAlike(const Op& op, absl::Span<const TensorType> inputs,
                                                   size_t count);

// Checks for `count` inputs, at least 1, that share a floating-point type.
absl::Status CheckGradients(const Op& op, absl::Span<const TensorType> inputs, int count);

// Returns the pairs of Op::InPlace for `count` outputs from `first_output` on, each in place of an input from
// `first_input` on.
std::vector<std::pair<int, int>> PairsInPlace(int first_output, int first_input, int count);

// Returns the type of a sum over a batch: float64 for float64, else float32.
DType SumType(DType dtype);

// Returns `cost` with `flops_per_element` for each element of `tensors[0]` as its flops.
OpCost WithFlops(OpCost cost, double flops_per_element, absl::Span<const TensorType> tensors);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_INPUT_RULES_H_
