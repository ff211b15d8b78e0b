#include "proto/job_file/enum_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

// Returns the prefix of an enum's values: "ACTIVATION_" for Activation, "STATE_REASON_" for StateReason.
std::string Prefix(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  return prefix + "_";
}

}  // namespace

std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value) {
  return absl::AsciiStrToLower(absl::StripPrefix(value.name(), Prefix(*value.type())));
}

const google::protobuf::EnumValueDescriptor* FindEnumValue(const google::protobuf::EnumDescriptor& type,
                                                           absl::string_view name) {
  for (int i = 0; i < type.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor* value = type.value(i);
    if (absl::EqualsIgnoreCase(name, value->name()) || absl::EqualsIgnoreCase(name, ShortEnumName(*value))) {
      return value;
    }
  }
  return nullptr;
}

std::vector<std::string> ShortEnumNames(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(ShortEnumName(*type.value(i)));
  }
  return names;
}

}  // namespace tandem
