#ifndef TANDEM_SERVER_DAEMON_ADDRESS_SPACE_H_
#define TANDEM_SERVER_DAEMON_ADDRESS_SPACE_H_

#include "absl/status/status.h"

namespace tandem {

// FAILED_PRECONDITION: this process may have less address space (RLIMIT_AS) than the daemon's threads take,
// so that the daemon would crash.
absl::Status CheckAddressSpace();

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_ADDRESS_SPACE_H_
