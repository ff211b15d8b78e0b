#ifndef TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_
#define TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/authenticator.h"

namespace tandem {

// A server's certificate chain and private key, in PEM files.
struct TlsFiles {
  std::string certificate;
  std::string key;
};

// Credentials of a server on which `authenticator` judges every call, whatever its service, before a handler
// sees it: gRPC's own reflection service is covered as the project's are. gRPC's insecure credentials refuse
// an authenticator, so these are made on its core.
std::shared_ptr<grpc::ServerCredentials> PlainCredentials(std::shared_ptr<const Authenticator> authenticator);

// As PlainCredentials, over TLS (1.2 or later). FAILED_PRECONDITION: a file cannot be read, is no PEM, the
// key is not the certificate's, or others than its owner may read the key.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(
    const TlsFiles& files, std::shared_ptr<const Authenticator> authenticator);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_SERVER_CREDENTIALS_H_
