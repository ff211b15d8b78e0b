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

// Hears of each call that is refused before any service sees it: its path, "/tandem.v1.JobService/GetJob",
// which is whatever a stranger wrote, and why. On gRPC's threads; must not block. Whose connection it was is
// not known there.
using RefusalObserver = std::function<void(absl::string_view path, const absl::Status& status)>;

// Credentials of a server on which `authenticator` judges every call, whatever its service, before a handler
// sees it: gRPC's own reflection service is covered as the project's are. gRPC's insecure credentials refuse
// an authenticator, so these are made on its core. The observer may be null.
std::shared_ptr<grpc::ServerCredentials> PlainCredentials(std::shared_ptr<const Authenticator> authenticator,
                                                          RefusalObserver on_refused = nullptr);

// As PlainCredentials, over TLS (1.2 or later) with what `files` has at the moment of each handshake. Where
// it asks clients for certificates, a handshake without one of the right authority fails. Who calls is the
// token's user all the same.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(std::shared_ptr<const TlsReloader> files,
                                                        std::shared_ptr<const Authenticator> authenticator,
                                                        RefusalObserver on_refused = nullptr);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_
