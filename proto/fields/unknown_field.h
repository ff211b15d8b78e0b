#ifndef TANDEM_PROTO_FIELDS_UNKNOWN_FIELD_H_
#define TANDEM_PROTO_FIELDS_UNKNOWN_FIELD_H_

#include <google/protobuf/message.h>

#include <optional>
#include <string>

namespace tandem {

// The path of the first field in the message, at any depth, that its descriptors do not have: such a field
// goes by its number, "spec.model.layers[2].dense.99". nullopt: there is none.
std::optional<std::string> FindUnknownField(const google::protobuf::Message& message);

}  // namespace tandem

#endif  // TANDEM_PROTO_FIELDS_UNKNOWN_FIELD_H_
