#ifndef TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_
#define TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/auth/authenticator.h"
#include "server/auth/tls_reloader.h"

namespace tandem {

// Called for each call that is refused before a service sees it, with the call's path and the error. The path
// ("/tandem.v1.JobService/GetJob") is untrusted text. Runs on gRPC's threads; must not block. The peer is
// unknown.
using RefusalObserver = std::function<void(absl::string_view path, const absl::Status& status)>;

// Returns credentials that have `authenticator` check every call of every service, gRPC's reflection service
// included. gRPC's insecure credentials take no authenticator, so these credentials use gRPC's core directly.
// `on_refused` may be null.
std::shared_ptr<grpc::ServerCredentials> PlainCredentials(std::shared_ptr<const Authenticator> authenticator,
                                                          RefusalObserver on_refused = nullptr);

// Like PlainCredentials, over TLS 1.2 or later. Each handshake uses the current content of `files`. If
// `files` has client authorities, a handshake without a certificate of these authorities fails. The token
// alone still identifies the caller.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(std::shared_ptr<const TlsReloader> files,
                                                        std::shared_ptr<const Authenticator> authenticator,
                                                        RefusalObserver on_refused = nullptr);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_
