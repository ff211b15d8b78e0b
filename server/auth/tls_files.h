#ifndef TANDEM_SERVER_AUTH_TLS_FILES_H_
#define TANDEM_SERVER_AUTH_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/auth/certificate_validity.h"

namespace tandem {

// What a server needs for TLS, in PEM files.
struct TlsFiles {
  // The server's certificate, and those that lead to its authority.
  std::string certificate;
  std::string key;
  // Authorities whose certificates clients must show; empty: clients need none.
  std::string client_ca;
};

// What is in them.
struct TlsContent {
  std::string certificate;
  std::string key;
  std::string client_ca;
  CertificateValidity validity;
};

// Reads and checks them. FAILED_PRECONDITION: a file cannot be read, is no PEM, the key is not the
// certificate's, or others than its owner and group may read the key.
absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TLS_FILES_H_
