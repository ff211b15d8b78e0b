#ifndef TANDEM_SERVER_AUTH_LISTEN_POLICY_H_
#define TANDEM_SERVER_AUTH_LISTEN_POLICY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Where a server listens.
struct ListenAddress {
  std::string host;  // An IP address or a name, without brackets.
  int port = 0;      // 0: one that is free.

  // "127.0.0.1:7447", "[::1]:7447".
  std::string ToString() const;
  // Whether only this machine can reach it: 127.0.0.0/8, ::1 or "localhost".
  bool IsLoopback() const;
};

// Reads "host:port" or "[IPv6 address]:port". INVALID_ARGUMENT says what is wrong.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Whether the daemon may listen there: beyond loopback only with TLS or where it was asked for in plain
// words, since the token and all else could be read on the way. FAILED_PRECONDITION says what to do.
absl::Status CheckListenPolicy(const ListenAddress& address, bool tls, bool insecure_beyond_loopback);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_LISTEN_POLICY_H_
