#ifndef TANDEM_PROTO_JOB_FILE_FIELD_SETTING_H_
#define TANDEM_PROTO_JOB_FILE_FIELD_SETTING_H_

#include <google/protobuf/struct.pb.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Applies "path=value" to a job, checked as a file is; the value is YAML. Lists are indexed from 0 and may be
// set whole: "model.layers[0].conv2d.filters=8", "model.layers[0].conv2d.kernel=[3, 3]". A member of a oneof
// takes the place of another. INVALID_ARGUMENT with a line for each problem; the job is as before then.
absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* spec);

// Sets the field that a path leads to, as ApplyOverride does, to a value in YAML; `canonical`, unless null,
// is then what it holds as JSON has it, for a request.
absl::Status SetField(absl::string_view path, absl::string_view yaml, v1::JobSpec* spec,
                      google::protobuf::Value* canonical = nullptr);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_FIELD_SETTING_H_
