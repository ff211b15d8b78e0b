#ifndef TANDEM_PROTO_FIELDS_FIELD_PLACE_H_
#define TANDEM_PROTO_FIELDS_FIELD_PLACE_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A field of a message, or an element of a list, that a path leads to.
struct FieldPlace {
  // Not owned.
  google::protobuf::Message* message = nullptr;
  const google::protobuf::FieldDescriptor* field = nullptr;
  // Of an element, which is there; -1: the whole field.
  int index = -1;
  // As messages about it call it: "model.layers[0].conv2d.filters".
  std::string path;
};

// What to say of a name that is none of `known`: "did you mean `units`?".
using NameHint =
    absl::FunctionRef<std::string(absl::string_view name, const std::vector<std::string>& known)>;

// Goes a path of fields' names, which dots divide; lists are indexed from 0. Messages on the way are made, so
// that a path chooses members of oneofs. INVALID_ARGUMENT: it is no path, or leads nowhere; the message
// begins with the part of it that is wrong. Then `root` may have changed all the same.
absl::StatusOr<FieldPlace> FindField(absl::string_view path, NameHint hint, google::protobuf::Message* root);

}  // namespace tandem

#endif  // TANDEM_PROTO_FIELDS_FIELD_PLACE_H_
