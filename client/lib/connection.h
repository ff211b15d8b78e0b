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

// Where a daemon listens when nothing else is said.
inline constexpr char kDefaultAddress[] = "127.0.0.1:7447";

// How to reach a daemon.
struct ConnectionOptions {
  // "host:port", "[v6]:port" or "unix:path".
  std::string address = kDefaultAddress;
  // Sent with every call as a bearer token; empty: none is sent.
  std::string token;
  // Whether to use TLS; implied by a CA file.
  bool tls = false;
  // PEM certificates of the authorities that may vouch for the daemon; empty: those of the system.
  std::string tls_ca_file;
  // PEM certificate and key that the client shows; empty: none.
  std::string tls_certificate_file;
  std::string tls_key_file;
  // The name to look for in the daemon's certificate; empty: the address's host.
  std::string tls_server_name;
  // Let the token travel unencrypted to another machine.
  bool allow_plaintext = false;
  // Users of this machine one of whom must be it that listens at a local address without TLS, or else the
  // token is not sent, and calls end with UNAVAILABLE (see CheckListener); empty: whoever listens gets it.
  std::vector<uid_t> trusted_listeners;
  // Deadline of a call that is no stream.
  absl::Duration timeout = absl::Seconds(30);
};

// Whether the connection uses TLS, as asked for or as a file of it implies.
bool UsesTls(const ConnectionOptions& options);

// Whether the address can only be this machine: a loopback address, "localhost", an unspecified address or a
// Unix socket.
bool IsLocalAddress(absl::string_view address);

// An address at which a daemon listens, as it is reached from its own machine: a loopback address in place of
// an unspecified one (0.0.0.0, [::]), at which nothing can be reached by everybody's rules, and which no
// certificate names.
std::string ReachableAddress(absl::string_view address);

// A channel, which connects at the first call. INVALID_ARGUMENT: the address is no address, a file cannot be
// read or is not what TLS needs, or the token would travel unencrypted to another machine without
// allow_plaintext; the message says which option.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ConnectionOptions& options);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_CONNECTION_H_
