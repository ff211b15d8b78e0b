#ifndef TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
#define TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_

#include <openssl/x509.h>

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

// Returns the validity of the certificate in the file `path`, which errors name. FAILED_PRECONDITION: the
// certificate does not say when it is valid.
absl::StatusOr<CertificateValidity> ValidityOf(const X509& certificate, const std::string& path);

// Returns for example "2026-01-31 23:59 UTC".
std::string ShownTime(absl::Time time);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
