#include "proto/fields/unknown_field.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The parser limits the depth of messages, so this recursion is bounded. It builds a path only if it has
// found a field.
std::optional<std::string> Find(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    return absl::StrCat(unknown.field(0).number());
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (const auto found = Find(reflection.GetMessage(message, field)); found.has_value()) {
        return absl::StrCat(field->name(), ".", *found);
      }
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (const auto found = Find(reflection.GetRepeatedMessage(message, field, i)); found.has_value()) {
        return absl::StrCat(field->name(), "[", i, "].", *found);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindUnknownField(const Message& message) { return Find(message); }

}  // namespace tandem
