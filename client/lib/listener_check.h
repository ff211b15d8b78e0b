#ifndef TANDEM_CLIENT_LIB_LISTENER_CHECK_H_
#define TANDEM_CLIENT_LIB_LISTENER_CHECK_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem::client {

// Checks that only users in `trusted` (user ids) listen at a TCP address of this machine, so that a client
// may send a secret there. After a daemon's end, any user may take its port. UNAVAILABLE if another user
// listens; the message names the user. OK if the listener is unknown: nobody listens, the address is not a
// numeric loopback address or "localhost", or /proc/net does not show the listener. `root` is a prefix of
// /proc, for tests. Thread-safe.
absl::Status CheckListener(absl::string_view address, const std::vector<uid_t>& trusted,
                           const std::string& root = "");

// A part of CheckListener's message if another user listens.
inline constexpr char kStrangerListens[] = "another user of this machine listens there";

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_LISTENER_CHECK_H_
