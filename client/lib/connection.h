#ifndef TANDEM_CLIENT_LIB_CONNECTION_H_
#define TANDEM_CLIENT_LIB_CONNECTION_H_

#include <grpcpp/channel.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::client {

// The default address of a daemon.
inline constexpr char kDefaultAddress[] = "127.0.0.1:7447";

// How to reach a daemon.
struct ConnectionOptions {
  // "host:port", "[v6]:port" or "unix:path".
  std::string address = kDefaultAddress;
  // Bearer token of every call. Empty: no token.
  std::string token;
  // Whether to use TLS. A CA file also turns TLS on.
  bool tls = false;
  // PEM certificates of the authorities that sign the daemon's certificate. Empty: the system's authorities.
  std::string tls_ca_file;
  // The client's PEM certificate and key. Empty: no client certificate.
  std::string tls_certificate_file;
  std::string tls_key_file;
  // The expected name in the daemon's certificate. Empty: the address's host.
  std::string tls_server_name;
  // Sends the token to another machine even without encryption.
  bool allow_plaintext = false;
  // Users of this machine that may listen at a local address without TLS. If another user listens, the client
  // does not send the token, and calls end with UNAVAILABLE (see CheckListener). Empty: any user may listen.
  std::vector<uid_t> trusted_listeners;
  // Deadline of unary calls. Calls for which the daemon may read data have at least 10 minutes.
  absl::Duration timeout = absl::Seconds(30);
};

// Returns whether the connection uses TLS, by `tls` or by a CA file.
bool UsesTls(const ConnectionOptions& options);

// Returns whether the address can only be this machine: a loopback address, "localhost", an unspecified
// address or a Unix socket.
bool IsLocalAddress(absl::string_view address);

// Returns the address for clients on the daemon's own machine. Replaces an unspecified address (0.0.0.0,
// [::]) by a loopback address, because not every system can connect to an unspecified address, and no
// certificate names it.
std::string ReachableAddress(absl::string_view address);

// Opens a channel, which connects at the first call. INVALID_ARGUMENT if the address is malformed, a file
// cannot be read or is wrong for TLS, or the token would travel unencrypted to another machine without
// allow_plaintext. The message names the option.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ConnectionOptions& options);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_CONNECTION_H_
