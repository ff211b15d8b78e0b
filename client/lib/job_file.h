#ifndef TANDEM_CLIENT_LIB_JOB_FILE_H_
#define TANDEM_CLIENT_LIB_JOB_FILE_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job_file/field_setting.h"
#include "proto/job_file/job_text.h"
#include "tandem/v1/job.pb.h"

namespace tandem::client {

// The format of a job file.
enum class JobFileFormat {
  // By the file's extension (.yaml, .yml, .json, .textproto, .txtpb, .pbtxt, .prototxt), otherwise by its
  // content.
  kDetect,
  // Also reads JSON, a subset of YAML.
  kYaml,
  kTextProto,
};

// A job as its user wrote it.
struct JobFile {
  // The file's name in messages: its path, or "standard input".
  std::string name;
  v1::JobSpec spec;
  // The place of each field in the file. Empty for text proto.
  FieldPositions positions;
};

// Reads a job file ("-": standard input). INVALID_ARGUMENT if it is not a job; the message has a line for
// each problem: "job.yaml:7:5: model.layers[1].max_pol2d: unknown field; did you mean `max_pool2d`?". Other
// errors are those of ReadWholeFile.
absl::StatusOr<JobFile> ReadJobFile(const std::string& path);

// Parses a job file's content. `name` appears in messages, and its extension chooses the format.
absl::StatusOr<JobFile> ParseJobFile(const std::string& content, const std::string& name,
                                     JobFileFormat format = JobFileFormat::kDetect);

// Parses any message from YAML or JSON, with the places of its fields. Errors are those of ReadJobFile.
absl::Status ParseMessageFile(const std::string& content, const std::string& name,
                              google::protobuf::Message* message, FieldPositions* positions);

// Reads a data set from a file ("-": standard input) in YAML or JSON. The file has either the fields of a
// job's `dataset`, or a whole job, of which only `dataset` is used. Errors are those of ReadJobFile.
absl::StatusOr<v1::DatasetSpec> ReadDatasetFile(const std::string& path);

// Returns a field's name for a message about the daemon's refusal: "job.yaml:9:12:
// model.layers[2].dense.units". The place is missing if the file does not have the field. `field` is a path
// in a CreateJobRequest; its prefix "spec." is dropped.
std::string DescribeField(const JobFile& file, absl::string_view field);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_JOB_FILE_H_
