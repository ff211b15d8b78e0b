#ifndef TANDEM_PROTO_FIELDS_FIELD_VALUE_H_
#define TANDEM_PROTO_FIELDS_FIELD_VALUE_H_

#include <google/protobuf/struct.pb.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/fields/field_place.h"

namespace tandem {

// Sets a field to a value in the form of JSON. Replaces the old value and another member of the field's
// oneof. INVALID_ARGUMENT if the field does not take the value; the message does not name the field, and the
// field keeps its old value.
absl::Status SetFieldValue(const FieldPlace& place, const google::protobuf::Value& value);

// Returns a field's value in the form of JSON. Whole numbers are numbers if a double is exact for them,
// otherwise text.
absl::StatusOr<google::protobuf::Value> GetFieldValue(const FieldPlace& place);

// Returns a value as a line of JSON. INVALID_ARGUMENT if it has no kind, is null, or is a number that is not
// finite.
absl::StatusOr<std::string> ToJsonText(const google::protobuf::Value& value);

}  // namespace tandem

#endif  // TANDEM_PROTO_FIELDS_FIELD_VALUE_H_
