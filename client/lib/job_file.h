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

// How a job file is written.
enum class JobFileFormat {
  // By the ending of the file's name (.yaml, .yml, .json, .textproto, .txtpb, .pbtxt, .prototxt), else by its
  // content.
  kDetect,
  // JSON too, of which YAML is a superset.
  kYaml,
  kTextProto,
};

// A job as its user wrote it.
struct JobFile {
  // What messages call the file: its path, or "standard input".
  std::string name;
  v1::JobSpec spec;
  // Where each field stands in the file; empty for text proto.
  FieldPositions positions;
};

// Reads a job file ("-": standard input). INVALID_ARGUMENT where it is no job: the message has a line for
// each problem, "job.yaml:7:5: model.layers[1].max_pol2d: unknown field; did you mean `max_pool2d`?". Else
// errors of reading.
absl::StatusOr<JobFile> ReadJobFile(const std::string& path);

// Reads a job file's content; `name` is for messages and for detecting the format.
absl::StatusOr<JobFile> ParseJobFile(const std::string& content, const std::string& name,
                                     JobFileFormat format = JobFileFormat::kDetect);

// Reads any message from YAML or JSON, and where its fields stand there; errors are those of ReadJobFile.
absl::Status ParseMessageFile(const std::string& content, const std::string& name,
                              google::protobuf::Message* message, FieldPositions* positions);

// Reads a data set, as a job has one under `dataset`, from a file ("-": standard input) in YAML or JSON: the
// data set alone, or a job file, of which all else is left alone. Errors are those of ReadJobFile.
absl::StatusOr<v1::DatasetSpec> ReadDatasetFile(const std::string& path);

// What a message should say about a field that the daemon refuses: "job.yaml:9:12:
// model.layers[2].dense.units", or without the place where the file does not have the field. `field` is a
// path in a CreateJobRequest; its "spec." is left out.
std::string DescribeField(const JobFile& file, absl::string_view field);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_JOB_FILE_H_
