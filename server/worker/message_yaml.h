#ifndef TANDEM_SERVER_WORKER_MESSAGE_YAML_H_
#define TANDEM_SERVER_WORKER_MESSAGE_YAML_H_

#include <string>

#include "google/protobuf/message.h"

namespace tandem {

// Returns a message as YAML that parses to the same message. Set fields appear by their .proto names, in the
// order of their numbers. Lists of scalars take one line, enum values have their full names, and numbers are
// exact. Maps and bytes are not supported, because the API's job specs have none.
std::string MessageToYaml(const google::protobuf::Message& message);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_MESSAGE_YAML_H_
