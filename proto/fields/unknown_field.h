#ifndef TANDEM_PROTO_FIELDS_UNKNOWN_FIELD_H_
#define TANDEM_PROTO_FIELDS_UNKNOWN_FIELD_H_

#include <google/protobuf/message.h>

#include <optional>
#include <string>

namespace tandem {

// Returns the path of the first field in the message, at any depth, that is not in its descriptors, or
// nullopt. The path has the number of such a field: "spec.model.layers[2].dense.99".
std::optional<std::string> FindUnknownField(const google::protobuf::Message& message);

}  // namespace tandem

#endif  // TANDEM_PROTO_FIELDS_UNKNOWN_FIELD_H_
