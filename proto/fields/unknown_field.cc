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

// `prefix` is empty or ends with a dot. No message is deeper than the parser allows.
std::optional<std::string> Find(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    return absl::StrCat(prefix, unknown.field(0).number());
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string path = absl::StrCat(prefix, field->name());
    if (!field->is_repeated()) {
      if (auto found = Find(reflection.GetMessage(message, field), path + "."); found.has_value())
        return found;
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      auto found = Find(reflection.GetRepeatedMessage(message, field, i), absl::StrCat(path, "[", i, "]."));
      if (found.has_value()) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindUnknownField(const Message& message) { return Find(message, ""); }

}  // namespace tandem
