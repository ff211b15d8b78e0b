#ifndef TANDEM_CLIENT_CLI_OUTPUT_H_
#define TANDEM_CLIENT_CLI_OUTPUT_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace tandem::cli {

// The format of results.
enum class OutputFormat { kTable, kWide, kJson, kYaml };

// Whether JSON includes fields that are 0 or empty. The index of the first class, 0, must be included.
enum class Zeros { kLeftOut, kShown };

// Returns a list of messages as a JSON array with the API's field names.
std::string ToJson(const std::vector<const google::protobuf::Message*>& messages,
                   Zeros zeros = Zeros::kLeftOut);

// Returns pointers to all messages of a list.
template <typename List>
std::vector<const google::protobuf::Message*> Pointers(const List& list) {
  std::vector<const google::protobuf::Message*> pointers;
  for (const auto& message : list) pointers.push_back(&message);
  return pointers;
}

// Return a message or a list of messages as JSON or YAML. `format` must be one of the two.
std::string Structured(OutputFormat format, const std::vector<const google::protobuf::Message*>& messages);
std::string Structured(OutputFormat format, const google::protobuf::Message& message);
// Returns a message of a stream as a line of JSON or as a YAML document. `format` must be one of the two.
std::string StreamText(OutputFormat format, const google::protobuf::Message& message);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_OUTPUT_H_
