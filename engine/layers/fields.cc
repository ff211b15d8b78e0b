#include "engine/layers/fields.h"

#include "absl/strings/str_cat.h"
#include "engine/initializers/initializer.h"

namespace tandem {

void CheckExtent(absl::string_view field, int64_t value, int64_t least, FieldViolations& violations,
                 int64_t most) {
  if (value >= least && value <= most) return;
  violations.Add(
      field, absl::StrCat("is ", value, "; it must be ",
                          value < least ? absl::StrCat("at least ", least) : absl::StrCat("at most ", most)));
}

void CheckPair(absl::string_view field, const google::protobuf::RepeatedField<int64_t>& values, int64_t least,
               FieldViolations& violations) {
  if (values.empty() || values.size() > 2) {
    violations.Add(
        field, absl::StrCat(values.empty() ? "is missing" : absl::StrCat("has ", values.size(), " numbers"),
                            "; give a height and a width, or one number for both"));
    return;
  }
  for (int i = 0; i < values.size(); ++i) {
    CheckExtent(absl::StrCat(field, "[", i, "]"), values[i], least, violations, kMaxSide);
  }
}

Size2d PairOf(const google::protobuf::RepeatedField<int64_t>& values) {
  return {values[0], values[values.size() - 1]};
}

void FillPair(int64_t value, google::protobuf::RepeatedField<int64_t>* values) {
  if (values->empty()) values->Resize(2, value);
}

absl::StatusOr<int> ResolveAxis(absl::string_view field, int64_t axis, const Shape& input) {
  const int rank = input.rank();
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  return FieldError(field, absl::StrCat("is ", axis, "; it must be from ", -rank, " to ", rank - 1, " for ",
                                        input.ToString()));
}

int BatchedAxis(int64_t axis, const Shape& batch) {
  return static_cast<int>(axis < 0 ? axis + batch.rank() : axis + 1);
}

absl::Status CheckImage(absl::string_view field, const Shape& input) {
  if (input.rank() == 3 && input[1] <= kMaxExtent && input[2] <= kMaxExtent) return absl::OkStatus();
  if (input.rank() == 3) {
    return FieldError(field, absl::StrCat("takes images of at most ", kMaxExtent, " pixels each way, not ",
                                          input.ToString()));
  }
  return FieldError(field, absl::StrCat("takes images [channels, height, width], not ", input.ToString()));
}

absl::Status CheckVectors(absl::string_view field, const Shape& input) {
  if (input.rank() == 2) return absl::OkStatus();
  return FieldError(field, absl::StrCat("takes sequences [length, features], not ", input.ToString()));
}

void FillInitializer(const v1::Initializer& otherwise, v1::Initializer* initializer) {
  if (initializer->kind_case() == v1::Initializer::KIND_NOT_SET) *initializer = otherwise;
  FillInitializerDefaults(initializer);
}

v1::Initializer XavierUniform() {
  v1::Initializer initializer;
  initializer.mutable_xavier()->set_distribution(v1::INITIALIZER_DISTRIBUTION_UNIFORM);
  return initializer;
}

v1::Initializer Zeros() {
  v1::Initializer initializer;
  initializer.mutable_zeros();
  return initializer;
}

v1::Initializer Ones() {
  v1::Initializer initializer;
  initializer.mutable_constant()->set_value(1);
  return initializer;
}

v1::Initializer Normal(double standard_deviation) {
  v1::Initializer initializer;
  initializer.mutable_normal()->set_standard_deviation(standard_deviation);
  return initializer;
}

}  // namespace tandem
