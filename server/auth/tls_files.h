#ifndef TANDEM_SERVER_AUTH_TLS_FILES_H_
#define TANDEM_SERVER_AUTH_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/auth/certificate_validity.h"

namespace tandem {

// The paths of a server's PEM files for TLS.
struct TlsFiles {
  // The server's certificate and its chain.
  std::string certificate;
  std::string key;
  // The authorities of client certificates. Empty: clients need no certificate.
  std::string client_ca;
};

// The content of the files.
struct TlsContent {
  std::string certificate;
  std::string key;
  std::string client_ca;
  CertificateValidity validity;
};

// Reads and checks the files. FAILED_PRECONDITION: a file cannot be read or is no PEM, the key does not fit
// the certificate, or users other than owner and group may read the key.
absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TLS_FILES_H_
