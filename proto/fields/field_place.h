#ifndef TANDEM_PROTO_FIELDS_FIELD_PLACE_H_
#define TANDEM_PROTO_FIELDS_FIELD_PLACE_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A field of a message, or an element of a list.
struct FieldPlace {
  // Not owned.
  google::protobuf::Message* message = nullptr;
  const google::protobuf::FieldDescriptor* field = nullptr;
  // The index of an existing element, or -1 for the whole field.
  int index = -1;
  // The path for messages: "model.layers[0].conv2d.filters".
  std::string path;
};

// Returns a hint for a name that is not in `known`: "did you mean `units`?".
using NameHint =
    absl::FunctionRef<std::string(absl::string_view name, const std::vector<std::string>& known)>;

// Follows a path of field names with dots between them. Lists are indexed from 0. Creates the messages along
// the path, so a path chooses members of oneofs. INVALID_ARGUMENT if the path is malformed or a field does
// not exist; the message begins with the wrong part of the path. `root` may change even then.
absl::StatusOr<FieldPlace> FindField(absl::string_view path, NameHint hint, google::protobuf::Message* root);

}  // namespace tandem

#endif  // TANDEM_PROTO_FIELDS_FIELD_PLACE_H_
