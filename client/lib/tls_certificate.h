#ifndef TANDEM_CLIENT_LIB_TLS_CERTIFICATE_H_
#define TANDEM_CLIENT_LIB_TLS_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::client {

// From when and until when a server's certificate is valid, and whose it is.
struct TlsCertificate {
  std::string subject;
  absl::Time begin;
  absl::Time end;
};

// The certificate that the server at "host:port" shows, whoever vouches for it: to say what is wrong with it,
// never to trust it. UNAVAILABLE: nobody there speaks TLS, within `timeout`.
absl::StatusOr<TlsCertificate> FetchTlsCertificate(const std::string& address, absl::Duration timeout);

// A server's TLS files, in PEM; `client_ca` may be empty.
struct TlsFilePaths {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// The certificate in a server's files. FAILED_PRECONDITION: one of them cannot be read or is no PEM, or the
// key is not the certificate's; the message says which.
absl::StatusOr<TlsCertificate> ReadTlsFiles(const TlsFilePaths& paths);

// What is wrong with the content of files in PEM for a client's connection, as "holds no certificate in PEM
// form"; empty: nothing. gRPC says no more than that it has no addresses.
std::string WrongWithCertificate(absl::string_view pem);
// Of the key of that certificate, whose file is named.
std::string WrongWithKey(absl::string_view pem, absl::string_view certificate_pem,
                         const std::string& certificate_path);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_TLS_CERTIFICATE_H_
