#ifndef TANDEM_SERVER_AUTH_LISTEN_POLICY_H_
#define TANDEM_SERVER_AUTH_LISTEN_POLICY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The address where a server listens.
struct ListenAddress {
  std::string host;  // An IP address or a name, without brackets.
  int port = 0;      // 0: any free port.

  // "127.0.0.1:7447", "[::1]:7447".
  std::string ToString() const;
  // Returns true if only this machine can reach the address: 127.0.0.0/8, ::1 or "localhost".
  bool IsLoopback() const;
};

// Parses "host:port" or "[IPv6 address]:port". INVALID_ARGUMENT names the fault.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Returns OK if the daemon may listen at the address. Beyond loopback, the daemon needs TLS or an explicit
// option, because others on the network could read the token and the data. FAILED_PRECONDITION names the
// remedy.
absl::Status CheckListenPolicy(const ListenAddress& address, bool tls, bool insecure_beyond_loopback);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_LISTEN_POLICY_H_
