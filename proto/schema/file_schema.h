#ifndef TANDEM_PROTO_SCHEMA_FILE_SCHEMA_H_
#define TANDEM_PROTO_SCHEMA_FILE_SCHEMA_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// A JSON Schema (draft-07) of the YAML and JSON files that MessageReader reads as a message of this type. It
// accepts the short forms of such a file. The comments of messages, fields and enum values become
// descriptions, if the type's pool has source information. Fields that only the daemon sets are left out.
std::string FileSchema(const google::protobuf::Descriptor& type, absl::string_view title);

}  // namespace tandem

#endif  // TANDEM_PROTO_SCHEMA_FILE_SCHEMA_H_
