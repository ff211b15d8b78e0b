#ifndef TANDEM_SERVER_WORKER_MESSAGE_YAML_H_
#define TANDEM_SERVER_WORKER_MESSAGE_YAML_H_

#include <string>

#include "google/protobuf/message.h"

namespace tandem {

// A message as YAML that reads back to the same message: fields that are set, by their names in the .proto,
// in the order of their numbers; lists of scalars on one line; enum values by their whole names; numbers
// exactly. Maps and bytes are not supported: the API's job specs have none.
std::string MessageToYaml(const google::protobuf::Message& message);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_MESSAGE_YAML_H_
