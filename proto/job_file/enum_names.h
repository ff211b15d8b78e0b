#ifndef TANDEM_CLIENT_LIB_ENUM_NAMES_H_
#define TANDEM_CLIENT_LIB_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns the short name of an enum's value: in lower case, without the enum's prefix, such as "relu" for
// ACTIVATION_RELU. All functions of this file are thread-safe.
std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value);

// Returns the short name of a number of `Enum`, or the number if it has no name.
template <typename Enum>
std::string ShortEnumName(Enum number) {
  const google::protobuf::EnumDescriptor* type = google::protobuf::GetEnumDescriptor<Enum>();
  const google::protobuf::EnumValueDescriptor* value = type->FindValueByNumber(number);
  return value == nullptr ? std::to_string(static_cast<int>(number)) : ShortEnumName(*value);
}

// Returns the value with this short or full name, in any case of letters, or null.
const google::protobuf::EnumValueDescriptor* FindEnumValue(const google::protobuf::EnumDescriptor& type,
                                                           absl::string_view name);

// Returns the short names of all values except value 0, which means unset.
std::vector<std::string> ShortEnumNames(const google::protobuf::EnumDescriptor& type);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_ENUM_NAMES_H_
