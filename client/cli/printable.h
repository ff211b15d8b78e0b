#ifndef TANDEM_CLIENT_CLI_PRINTABLE_H_
#define TANDEM_CLIENT_CLI_PRINTABLE_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tandem::cli {

// Text of the daemon's as a terminal may show it: control characters but line feeds and tabs are written out
// ("\x1b"), so that nothing in a job's name or a worker's last words moves the cursor or talks to the
// terminal.
std::string Printable(absl::string_view text);

// The same for all strings in a message, map values included. For messages that become text; JSON and YAML
// write control characters out by themselves.
void MakePrintable(google::protobuf::Message* message);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PRINTABLE_H_
