#ifndef TANDEM_SERVER_DAEMON_ADDRESS_SPACE_H_
#define TANDEM_SERVER_DAEMON_ADDRESS_SPACE_H_

#include "absl/status/status.h"

namespace tandem {

// FAILED_PRECONDITION: the limit on the process's address space (RLIMIT_AS) is too small for the daemon's
// threads, so the daemon would crash.
absl::Status CheckAddressSpace();

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_ADDRESS_SPACE_H_
