#ifndef TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
#define TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// From when and until when a certificate is valid.
struct CertificateValidity {
  absl::Time begin;
  absl::Time end;
};

// What the owner of a certificate is to know of it.
struct CertificateTrouble {
  // Whether clients refuse it.
  bool is_refused = false;
  // For people, to go on after its name: "has expired on ...: clients refuse it; renew it".
  std::string text;
};

// None where it is valid now and two weeks from now.
std::optional<CertificateTrouble> TroubleOf(const CertificateValidity& validity, absl::Time now);

// Of the first certificate in a PEM file, which is the daemon's own. FAILED_PRECONDITION: the file cannot be
// read, or holds none.
absl::StatusOr<CertificateValidity> ReadCertificateValidity(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
