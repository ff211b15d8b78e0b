#ifndef TANDEM_CLIENT_CLI_REQUEST_ID_H_
#define TANDEM_CLIENT_CLI_REQUEST_ID_H_

#include <string>

#include "absl/status/status.h"

namespace tandem::cli {

// Returns a random request id. With such an id, a call that the channel sends twice creates only one object.
std::string RandomRequestId();

// Returns whether the daemon may have carried out a call with this status.
bool MayHaveArrived(const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_REQUEST_ID_H_
