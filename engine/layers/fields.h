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

// Checks and readings of fields that several kinds of layer have.

// The largest number that an extent or a count may be.
inline constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();
// The largest number that a side of a window, a stride, a dilation or a padding may be: the product of two
// fits the int32 that libraries reckon in.
inline constexpr int64_t kMaxSide = 32768;

// That `value` is in [least, most].
void CheckExtent(absl::string_view field, int64_t value, int64_t least, FieldViolations& violations,
                 int64_t most = kMaxExtent);

// That `values` has one or two numbers, each in [least, kMaxSide].
void CheckPair(absl::string_view field, const google::protobuf::RepeatedField<int64_t>& values, int64_t least,
               FieldViolations& violations);

// Height and width; one number is both. `values` has passed CheckPair.
Size2d PairOf(const google::protobuf::RepeatedField<int64_t>& values);

// Makes both numbers `value` where there are none.
void FillPair(int64_t value, google::protobuf::RepeatedField<int64_t>* values);

// Which dimension of a sample of shape `input` an axis is, from 0; below 0 it counts from the last. The error
// is of `field`.
absl::StatusOr<int> ResolveAxis(absl::string_view field, int64_t axis, const Shape& input);
// The same dimension of a batch of shape `batch`, for an axis that ResolveAxis takes.
int BatchedAxis(int64_t axis, const Shape& batch);

// That input samples are [channels, height, width], the last two at most kMaxExtent; the error is of `field`.
absl::Status CheckImage(absl::string_view field, const Shape& input);

// That input samples are sequences of vectors [length, features]; the error is of `field`.
absl::Status CheckVectors(absl::string_view field, const Shape& input);

// Fills in `otherwise` where the message has no kind, and the kind's own defaults.
void FillInitializer(const v1::Initializer& otherwise, v1::Initializer* initializer);
v1::Initializer XavierUniform();
v1::Initializer Zeros();
v1::Initializer Ones();
v1::Initializer Normal(double standard_deviation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_FIELDS_H_
