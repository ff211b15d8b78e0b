#ifndef TANDEM_CLIENT_LIB_YAML_WRITER_H_
#define TANDEM_CLIENT_LIB_YAML_WRITER_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace tandem::client {

// Returns a message as YAML, in the order of its field numbers. Enums have their short names, and times RFC
// 3339's form. Unset fields are missing. Small messages and lists of values are on a single line. The text
// ends with a newline; an empty message is "{}\n". ParseJobFile reads the text of a job back to an equal job.
std::string ToYaml(const google::protobuf::Message& message);

// Returns a list of messages as YAML, or "[]\n" if it is empty.
std::string ToYaml(const std::vector<const google::protobuf::Message*>& messages);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_YAML_WRITER_H_
