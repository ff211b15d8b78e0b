#ifndef TANDEM_CLIENT_CLI_REQUEST_ID_H_
#define TANDEM_CLIENT_CLI_REQUEST_ID_H_

#include <string>

#include "absl/status/status.h"

namespace tandem::cli {

// A request id of its own makes it harmless that the channel may send a call twice.
std::string RandomRequestId();

// Whether a call that failed so may have been carried out.
bool MayHaveArrived(const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_REQUEST_ID_H_
