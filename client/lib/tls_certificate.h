#ifndef TANDEM_CLIENT_LIB_TLS_CERTIFICATE_H_
#define TANDEM_CLIENT_LIB_TLS_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::client {

// A server certificate's subject and period of validity.
struct TlsCertificate {
  std::string subject;
  absl::Time begin;
  absl::Time end;
};

// Returns the certificate of the server at "host:port", even if nobody trusts it. For error messages only,
// never for trust. UNAVAILABLE if the server does not speak TLS within `timeout`.
absl::StatusOr<TlsCertificate> FetchTlsCertificate(const std::string& address, absl::Duration timeout);

// A server's TLS files, in PEM; `client_ca` may be empty.
struct TlsFilePaths {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// Returns the certificate in a server's files. FAILED_PRECONDITION if a file cannot be read or is not PEM, or
// if the key does not belong to the certificate. The message names the file.
absl::StatusOr<TlsCertificate> ReadTlsFiles(const TlsFilePaths& paths);

// Returns the problem of a client's certificate in PEM, such as "holds no certificate in PEM form", or "".
// gRPC reports such problems only as missing addresses.
std::string WrongWithCertificate(absl::string_view pem);
// Returns the problem of this certificate's key, or "". `certificate_path` names the certificate's file in
// the message.
std::string WrongWithKey(absl::string_view pem, absl::string_view certificate_pem,
                         const std::string& certificate_path);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_TLS_CERTIFICATE_H_
