#ifndef TANDEM_PROTO_FIELDS_FIELD_VALUE_H_
#define TANDEM_PROTO_FIELDS_FIELD_VALUE_H_

#include <google/protobuf/struct.pb.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/fields/field_place.h"

namespace tandem {

// Sets a field to a value as it is written in JSON: what it held before is gone, and so is another member of
// its oneof. INVALID_ARGUMENT: it is no value for this field; the message does not name the field, and then
// it may have lost its value.
absl::Status SetFieldValue(const FieldPlace& place, const google::protobuf::Value& value);

// What a field holds, in that form. Whole numbers are numbers as far as a double has them exactly, beyond
// that text.
absl::StatusOr<google::protobuf::Value> GetFieldValue(const FieldPlace& place);

// A value in one line of JSON. INVALID_ARGUMENT: it has no kind, is null, or is a number that is not finite.
absl::StatusOr<std::string> ToJsonText(const google::protobuf::Value& value);

}  // namespace tandem

#endif  // TANDEM_PROTO_FIELDS_FIELD_VALUE_H_
