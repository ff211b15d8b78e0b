#ifndef TANDEM_CLIENT_LIB_JOB_FILE_H_
#define TANDEM_CLIENT_LIB_JOB_FILE_H_

#include <google/protobuf/struct.pb.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/message_reader.h"
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

// The largest job file that is read, in bytes.
inline constexpr size_t kLargestJobFile = 1 << 20;

// What is wrong with 0 replicas. For the daemon that is as if nobody had said how many.
inline constexpr char kNoReplicas[] = "is 0; want at least 1, or leave it out";

// A job as its user wrote it.
struct JobFile {
  // What messages call the file: its path, or "standard input".
  std::string name;
  v1::JobSpec spec;
  // Where each field stands in the file; empty for text proto.
  std::map<std::string, TextPosition> positions;
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
                              google::protobuf::Message* message,
                              std::map<std::string, TextPosition>* positions);

// Reads a data set, as a job has one under `dataset`, from a file ("-": standard input) in YAML or JSON: the
// data set alone, or a job file, of which all else is left alone. Errors are those of ReadJobFile.
absl::StatusOr<v1::DatasetSpec> ReadDatasetFile(const std::string& path);

// Applies "path=value" to a job, checked as a file is; the value is YAML. Lists are indexed from 0 and may be
// set whole: "model.layers[0].conv2d.filters=8", "model.layers[0].conv2d.kernel=[3, 3]". A member of a oneof
// takes the place of another. INVALID_ARGUMENT with a line for each problem; the job is as before then.
absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* spec);

// Sets the field that a path leads to, as ApplyOverride does, to a value in YAML; `canonical`, unless null,
// is then what it holds as JSON has it, for a request.
absl::Status SetField(absl::string_view path, absl::string_view yaml, v1::JobSpec* spec,
                      google::protobuf::Value* canonical = nullptr);

// What a message should say about a field that the daemon refuses: "job.yaml:9:12:
// model.layers[2].dense.units", or without the place where the file does not have the field. `field` is a
// path in a CreateJobRequest; its "spec." is left out.
std::string DescribeField(const JobFile& file, absl::string_view field);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_JOB_FILE_H_
