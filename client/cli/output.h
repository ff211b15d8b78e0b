#ifndef TANDEM_CLIENT_CLI_OUTPUT_H_
#define TANDEM_CLIENT_CLI_OUTPUT_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace tandem::cli {

// How results are written.
enum class OutputFormat { kTable, kWide, kJson, kYaml };

// Whether JSON has fields that are 0 or empty: a class's index is a number to read, even where it is 0.
enum class Zeros { kLeftOut, kShown };

// A message in the JSON of Protocol Buffers, with the API's own field names; over several lines where pretty,
// with a newline at the end then.
std::string ToJson(const google::protobuf::Message& message, bool pretty, Zeros zeros = Zeros::kLeftOut);

// A list of messages as one array.
std::string ToJson(const std::vector<const google::protobuf::Message*>& messages,
                   Zeros zeros = Zeros::kLeftOut);

// A message as YAML.
std::string ToYamlText(const google::protobuf::Message& message);

// Pointers to all of a list, as a list of any message.
template <typename List>
std::vector<const google::protobuf::Message*> Pointers(const List& list) {
  std::vector<const google::protobuf::Message*> pointers;
  for (const auto& message : list) pointers.push_back(&message);
  return pointers;
}

// A list or a message in JSON or YAML, as the format says, which is not a table.
std::string Structured(OutputFormat format, const std::vector<const google::protobuf::Message*>& messages);
std::string Structured(OutputFormat format, const google::protobuf::Message& message);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_OUTPUT_H_
