#ifndef TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
#define TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// The times between which a certificate is valid.
struct CertificateValidity {
  absl::Time begin;
  absl::Time end;
};

// A problem that the certificate's owner should know.
struct CertificateTrouble {
  // True if clients refuse the certificate.
  bool is_refused = false;
  // Completes a sentence that begins with the certificate's name: "expired on ..., so clients refuse it;
  // renew it".
  std::string text;
};

// Returns nullopt if the certificate is valid now and for two more weeks.
std::optional<CertificateTrouble> TroubleOf(const CertificateValidity& validity, absl::Time now);

// Returns the validity of the first certificate in a PEM file, the daemon's own. FAILED_PRECONDITION: the
// file cannot be read or holds no certificate.
absl::StatusOr<CertificateValidity> ReadCertificateValidity(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
