#include "server/worker/message_yaml.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Returns the shortest decimal that parses to the same number.
template <typename T>
std::string NumberToYaml(T value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  for (int digits = std::numeric_limits<T>::digits10; digits < std::numeric_limits<T>::max_digits10;
       ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && static_cast<T>(back) == value) return text;
  }
  return absl::StrFormat("%.*g", std::numeric_limits<T>::max_digits10, value);
}

// Leaves the string unquoted if YAML can only read it as a string.
std::string StringToYaml(absl::string_view text) {
  static constexpr absl::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  bool bare = !text.empty() && (absl::ascii_isalpha(text[0]) || text[0] == '/');
  for (const char c : text) {
    bare = bare && (absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/');
  }
  for (const absl::string_view word : kWords) bare = bare && absl::AsciiStrToLower(text) != word;
  if (bare) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (absl::ascii_iscntrl(c)) {
      absl::StrAppendFormat(&quoted, "\\x%02X", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns a field's value, or its element `index` if repeated.
std::string ScalarToYaml(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
#define TANDEM_GET(Type) \
  (repeated ? reflection.GetRepeated##Type(message, &field, index) : reflection.Get##Type(message, &field))
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(TANDEM_GET(Int32));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(TANDEM_GET(Int64));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(TANDEM_GET(UInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(TANDEM_GET(UInt64));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberToYaml(TANDEM_GET(Double));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberToYaml(TANDEM_GET(Float));
    case FieldDescriptor::CPPTYPE_BOOL:
      return TANDEM_GET(Bool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return TANDEM_GET(Enum)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return StringToYaml(TANDEM_GET(String));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
#undef TANDEM_GET
  return "";
}

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

// Appends the message's fields, one per line, after `indent` spaces. The first field comes after `first`
// instead.
void AppendMessage(const Message& message, const std::string& first, int indent, std::string* yaml) {
  const Reflection& reflection = *message.GetReflection();
  std::string start = first;
  for (const FieldDescriptor* field : SetFields(message)) {
    absl::StrAppend(yaml, start, field->name(), ":");
    start = std::string(indent, ' ');
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated() && is_message) {
      *yaml += '\n';
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        const Message& element = reflection.GetRepeatedMessage(message, field, i);
        if (SetFields(element).empty()) {
          absl::StrAppend(yaml, start, "- {}\n");
        } else {
          AppendMessage(element, start + "- ", indent + 2, yaml);
        }
      }
    } else if (field->is_repeated()) {
      std::vector<std::string> elements;
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        elements.push_back(ScalarToYaml(message, *field, i));
      }
      absl::StrAppend(yaml, " [", absl::StrJoin(elements, ", "), "]\n");
    } else if (is_message) {
      const Message& child = reflection.GetMessage(message, field);
      if (SetFields(child).empty()) {
        *yaml += " {}\n";
      } else {
        *yaml += '\n';
        AppendMessage(child, std::string(indent + 2, ' '), indent + 2, yaml);
      }
    } else {
      absl::StrAppend(yaml, " ", ScalarToYaml(message, *field, 0), "\n");
    }
  }
}

}  // namespace

std::string MessageToYaml(const Message& message) {
  std::string yaml;
  AppendMessage(message, "", 0, &yaml);
  return yaml.empty() ? "{}\n" : yaml;
}

}  // namespace tandem
