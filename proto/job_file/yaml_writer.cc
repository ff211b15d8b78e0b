#include "proto/job_file/yaml_writer.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/fields/field_value.h"
#include "proto/job_file/enum_names.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The widest message on a single line. Such a message holds no message of messages.
constexpr size_t kWidestFlow = 96;

bool IsReserved(absl::string_view text) {
  for (const char* word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

// Returns a text as a YAML scalar: plain if every reader takes it for the same text, otherwise in double
// quotes.
std::string TextScalar(const std::string& text) {
  bool plain = !text.empty() && (absl::ascii_isalpha(text[0]) || text[0] == '/' || text[0] == '_') &&
               !IsReserved(text);
  for (const char c : text) {
    plain = plain && (absl::ascii_isalnum(c) || absl::StrContains("_-./+ ", absl::string_view(&c, 1)));
  }
  if (plain && text.back() != ' ') return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", absl::string_view(&c, 1));
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (absl::ascii_iscntrl(c)) {
      absl::StrAppend(&quoted, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// The fewest digits that give the same number back.
template <typename Number>
std::string NumberScalar(Number value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

class Writer {
 public:
  void Block(const Message& message, int indent) {
    if (ListFields(message).empty()) {
      absl::StrAppend(&out_, std::string(indent, ' '), "{}\n");
      return;
    }
    for (const FieldDescriptor* field : ListFields(message)) BlockField(message, *field, indent);
  }

  void BlockItem(const Message& message, int indent) {
    // Writes the element as a block one level deeper, and then puts the dash into the block's first line.
    const size_t begin = out_.size();
    Block(message, indent + 2);
    out_[begin + indent] = '-';
  }

  std::string Take() { return std::move(out_); }

 private:
  static std::vector<const FieldDescriptor*> ListFields(const Message& message) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    return fields;
  }

  // Returns whether a message is written as its value: a time, or a google.protobuf.Value.
  static bool IsPlain(const google::protobuf::Descriptor& type) {
    return type.full_name() == "google.protobuf.Timestamp" || type.full_name() == "google.protobuf.Value";
  }

  static bool IsMessage(const FieldDescriptor& field) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsPlain(*field.message_type());
  }

  static std::string PlainMessage(const Message& message) {
    if (const auto* value = google::protobuf::DynamicCastToGenerated<google::protobuf::Value>(&message)) {
      return ToJsonText(*value).value_or("null");
    }
    return TextScalar(
        google::protobuf::util::TimeUtil::ToString(static_cast<const google::protobuf::Timestamp&>(message)));
  }

  // Returns the levels of messages below this message.
  static int Depth(const Message& message) {
    int depth = 0;
    const Reflection& reflection = *message.GetReflection();
    for (const FieldDescriptor* field : ListFields(message)) {
      if (!IsMessage(*field) || field->is_map()) continue;
      if (field->is_repeated()) return 100;
      depth = std::max(depth, 1 + Depth(reflection.GetMessage(message, field)));
    }
    return depth;
  }

  static std::string Scalar(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const bool repeated = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrCat(repeated ? reflection.GetRepeatedInt32(message, &field, index)
                                     : reflection.GetInt32(message, &field));
      case FieldDescriptor::CPPTYPE_INT64:
        return absl::StrCat(repeated ? reflection.GetRepeatedInt64(message, &field, index)
                                     : reflection.GetInt64(message, &field));
      case FieldDescriptor::CPPTYPE_UINT32:
        return absl::StrCat(repeated ? reflection.GetRepeatedUInt32(message, &field, index)
                                     : reflection.GetUInt32(message, &field));
      case FieldDescriptor::CPPTYPE_UINT64:
        return absl::StrCat(repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                                     : reflection.GetUInt64(message, &field));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return NumberScalar(repeated ? reflection.GetRepeatedDouble(message, &field, index)
                                     : reflection.GetDouble(message, &field));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return NumberScalar(repeated ? reflection.GetRepeatedFloat(message, &field, index)
                                     : reflection.GetFloat(message, &field));
      case FieldDescriptor::CPPTYPE_BOOL:
        return (repeated ? reflection.GetRepeatedBool(message, &field, index)
                         : reflection.GetBool(message, &field))
                   ? "true"
                   : "false";
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = repeated ? reflection.GetRepeatedString(message, &field, index)
                                          : reflection.GetString(message, &field);
        // Writes bytes in JSON's form.
        return TextScalar(field.type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(text) : text);
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number = repeated ? reflection.GetRepeatedEnumValue(message, &field, index)
                                    : reflection.GetEnumValue(message, &field);
        const auto* value = field.enum_type()->FindValueByNumber(number);
        return value == nullptr ? absl::StrCat(number) : ShortEnumName(*value);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return PlainMessage(repeated ? reflection.GetRepeatedMessage(message, &field, index)
                                     : reflection.GetMessage(message, &field));
    }
    return "";
  }

  // Returns the entries of a map field, sorted by their keys.
  static std::string FlowMap(const Message& message, const FieldDescriptor& field) {
    std::vector<std::string> entries;
    const FieldDescriptor& value = *field.message_type()->map_value();
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      const std::string key = Scalar(entry, *field.message_type()->map_key(), 0);
      entries.push_back(absl::StrCat(key, ": ",
                                     IsMessage(value) ? Flow(entry.GetReflection()->GetMessage(entry, &value))
                                                      : Scalar(entry, value, 0)));
    }
    std::sort(entries.begin(), entries.end());
    return absl::StrCat("{", absl::StrJoin(entries, ", "), "}");
  }

  static std::string FlowField(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (field.is_map()) return FlowMap(message, field);
    if (!field.is_repeated()) {
      return IsMessage(field) ? Flow(reflection.GetMessage(message, &field)) : Scalar(message, field, 0);
    }
    std::vector<std::string> elements;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      elements.push_back(IsMessage(field) ? Flow(reflection.GetRepeatedMessage(message, &field, i))
                                          : Scalar(message, field, i));
    }
    return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
  }

  static std::string Flow(const Message& message) {
    std::vector<std::string> entries;
    for (const FieldDescriptor* field : ListFields(message)) {
      entries.push_back(absl::StrCat(field->name(), ": ", FlowField(message, *field)));
    }
    return absl::StrCat("{", absl::StrJoin(entries, ", "), "}");
  }

  void BlockField(const Message& message, const FieldDescriptor& field, int indent) {
    const Reflection& reflection = *message.GetReflection();
    absl::StrAppend(&out_, std::string(indent, ' '), field.name(), ":");
    if (IsMessage(field) && field.is_repeated() && !field.is_map()) {
      out_ += "\n";
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        BlockItem(reflection.GetRepeatedMessage(message, &field, i), indent);
      }
      return;
    }
    if (IsMessage(field) && !field.is_map()) {
      const Message& child = reflection.GetMessage(message, &field);
      const std::string flow = Depth(child) <= 1 ? Flow(child) : "";
      if (flow.empty() ||
          (flow.size() + indent + field.name().size() > kWidestFlow && !ListFields(child).empty())) {
        out_ += "\n";
        return Block(child, indent + 2);
      }
    }
    absl::StrAppend(&out_, " ", FlowField(message, field), "\n");
  }

  std::string out_;
};

}  // namespace

std::string ToYaml(const Message& message) {
  Writer writer;
  writer.Block(message, 0);
  return writer.Take();
}

std::string ToYaml(const std::vector<const Message*>& messages) {
  if (messages.empty()) return "[]\n";
  Writer writer;
  for (const Message* message : messages) writer.BlockItem(*message, 0);
  return writer.Take();
}

}  // namespace tandem
