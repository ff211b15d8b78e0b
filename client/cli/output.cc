#include "client/cli/output.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "proto/job_file/yaml_writer.h"

namespace tandem::cli {
namespace {

// Returns a message as JSON. With `pretty`, the JSON has several lines and ends with a newline.
std::string ToJson(const google::protobuf::Message& message, bool pretty, Zeros zeros = Zeros::kLeftOut) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = pretty;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = zeros == Zeros::kShown;
  std::string text;
  // The conversion fails only for Any, and the API has none.
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return text;
}

}  // namespace

std::string ToJson(const std::vector<const google::protobuf::Message*>& messages, Zeros zeros) {
  std::string text = "[";
  for (size_t i = 0; i < messages.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "\n" : ",\n", ToJson(*messages[i], /*pretty=*/false, zeros));
  }
  return text + (messages.empty() ? "]\n" : "\n]\n");
}

std::string Structured(OutputFormat format, const std::vector<const google::protobuf::Message*>& messages) {
  return format == OutputFormat::kJson ? ToJson(messages) : ToYaml(messages);
}

std::string Structured(OutputFormat format, const google::protobuf::Message& message) {
  return format == OutputFormat::kJson ? ToJson(message, /*pretty=*/true) : ToYaml(message);
}

std::string StreamText(OutputFormat format, const google::protobuf::Message& message) {
  return format == OutputFormat::kJson ? absl::StrCat(ToJson(message, /*pretty=*/false), "\n")
                                       : absl::StrCat("---\n", ToYaml(message));
}

}  // namespace tandem::cli
