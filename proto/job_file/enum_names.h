#ifndef TANDEM_CLIENT_LIB_ENUM_NAMES_H_
#define TANDEM_CLIENT_LIB_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// The name that people write for an enum's value: without the enum's own prefix and in lower case, such as
// "relu" for ACTIVATION_RELU. Thread-safe, as everything in this file.
std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value);

// The short name of a number of `Enum`, or the number where it has none.
template <typename Enum>
std::string ShortEnumName(Enum number) {
  const google::protobuf::EnumDescriptor* type = google::protobuf::GetEnumDescriptor<Enum>();
  const google::protobuf::EnumValueDescriptor* value = type->FindValueByNumber(number);
  return value == nullptr ? std::to_string(static_cast<int>(number)) : ShortEnumName(*value);
}

// The value with the short or the full name, letters of either case; null where there is none.
const google::protobuf::EnumValueDescriptor* FindEnumValue(const google::protobuf::EnumDescriptor& type,
                                                           absl::string_view name);

// The short names of all values but the one that is numbered 0, which only says that nothing was said.
std::vector<std::string> ShortEnumNames(const google::protobuf::EnumDescriptor& type);

}  // namespace tandem

#endif  // TANDEM_CLIENT_LIB_ENUM_NAMES_H_
