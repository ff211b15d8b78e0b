#ifndef TANDEM_PROTO_JOB_FILE_FIELD_SETTING_H_
#define TANDEM_PROTO_JOB_FILE_FIELD_SETTING_H_

#include <google/protobuf/struct.pb.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Applies "path=value" to a job, with the checks of a job file. The value is YAML. Lists are indexed from 0,
// and a whole list may be set: "model.layers[0].conv2d.filters=8", "model.layers[0].conv2d.kernel=[3, 3]". A
// member of a oneof replaces the other members. For a text field, only quoted text, [...], {...} and null are
// YAML. Other text stands for itself, without outer spaces unless it has nothing else: "csv.delimiter=#".
// Null unsets a field: "dataset.validation_split=null". An element of a list cannot be unset.
// INVALID_ARGUMENT with a line for each problem; the job then does not change.
absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* spec);

// Sets the field with this path to a YAML value, with ApplyOverride's paths and checks. If `canonical` is not
// null, it receives the field's new value in the form of JSON, for a request.
absl::Status SetField(absl::string_view path, absl::string_view yaml, v1::JobSpec* spec,
                      google::protobuf::Value* canonical = nullptr);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_FIELD_SETTING_H_
