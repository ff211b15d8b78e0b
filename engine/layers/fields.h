#ifndef TANDEM_ENGINE_LAYERS_FIELDS_H_
#define TANDEM_ENGINE_LAYERS_FIELDS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/graph/ops/window.h"
#include "engine/tensor/shape.h"
#include "google/protobuf/repeated_field.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// Checks and conversions of fields that several kinds of layer share.

// The largest extent or count.
inline constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();
// The largest side of a window, stride, dilation or padding. The product of two fits into int32, in which
// libraries compute.
inline constexpr int64_t kMaxSide = 32768;

// Checks that `value` is in [least, most].
void CheckExtent(absl::string_view field, int64_t value, int64_t least, FieldViolations& violations,
                 int64_t most = kMaxExtent);

// Checks that `values` has one or two numbers, each in [least, kMaxSide].
void CheckPair(absl::string_view field, const google::protobuf::RepeatedField<int64_t>& values, int64_t least,
               FieldViolations& violations);

// Returns height and width. A single number means both. `values` has passed CheckPair.
Size2d PairOf(const google::protobuf::RepeatedField<int64_t>& values);

// Sets both numbers to `value` if there are none.
void FillPair(int64_t value, google::protobuf::RepeatedField<int64_t>* values);

// Returns the dimension of an axis for a sample of shape `input`, from 0. A negative axis counts from the
// last. Fields in errors are `field`.
absl::StatusOr<int> ResolveAxis(absl::string_view field, int64_t axis, const Shape& input);
// Returns the same dimension of a batch of shape `batch`. ResolveAxis accepts the axis.
int BatchedAxis(int64_t axis, const Shape& batch);

// Checks that samples are [channels, height, width], with height and width at most kMaxExtent. The error has
// the field `field`.
absl::Status CheckImage(absl::string_view field, const Shape& input);

// Checks that samples are sequences of vectors [length, features]. The error has the field `field`.
absl::Status CheckVectors(absl::string_view field, const Shape& input);

// Sets `otherwise` if the message has no kind, then the kind's own defaults.
void FillInitializer(const v1::Initializer& otherwise, v1::Initializer* initializer);
v1::Initializer XavierUniform();
v1::Initializer Zeros();
v1::Initializer Ones();
v1::Initializer Normal(double standard_deviation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_FIELDS_H_
