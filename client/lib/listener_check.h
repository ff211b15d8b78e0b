#ifndef TANDEM_CLIENT_LIB_LISTENER_CHECK_H_
#define TANDEM_CLIENT_LIB_LISTENER_CHECK_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem::client {

// Whether nobody but the users in `trusted` (as user ids) listens at a TCP address of this machine, so that a
// secret may be sent there: after a daemon's end any account may take its port. UNAVAILABLE: somebody else
// does; the message says who. OK as well where that cannot be known: nobody listens, the address is not one
// of this machine's loopback in numbers or "localhost", or /proc/net does not show it. `root`: before /proc,
// for tests. Thread-safe.
absl::Status CheckListener(absl::string_view address, const std::vector<uid_t>& trusted,
                           const std::string& root = "");

// Stands in CheckListener's message when it refuses.
inline constexpr char kStrangerListens[] = "another user of this machine listens there";

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_LISTENER_CHECK_H_
