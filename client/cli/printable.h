#ifndef TANDEM_CLIENT_CLI_PRINTABLE_H_
#define TANDEM_CLIENT_CLI_PRINTABLE_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tandem::cli {

// Returns the daemon's text for a terminal. Control characters except line feeds and tabs become text
// ("\x1b"). So nothing in a job's name or a worker's message can move the cursor or control the terminal.
std::string Printable(absl::string_view text);

// Makes all strings in a message printable, including values of maps. For messages that become text; JSON and
// YAML escape control characters themselves.
void MakePrintable(google::protobuf::Message* message);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PRINTABLE_H_
