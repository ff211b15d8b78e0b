#ifndef TANDEM_PROTO_JOB_FILE_YAML_WRITER_H_
#define TANDEM_PROTO_JOB_FILE_YAML_WRITER_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace tandem {

// A message as YAML, in the order of its field numbers: enums by their short names, times as RFC 3339, fields
// that were not set left out, small messages and lists of values on one line. Ends with a newline; "{}\n" for
// an empty message. A job that is written so and read by ParseJobFile is equal to the first.
std::string ToYaml(const google::protobuf::Message& message);

// The same for a list of messages: "[]\n" for none.
std::string ToYaml(const std::vector<const google::protobuf::Message*>& messages);

}  // namespace tandem

#endif  // TANDEM_PROTO_JOB_FILE_YAML_WRITER_H_
