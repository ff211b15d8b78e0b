#ifndef TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
#define TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// From when and until when a certificate is valid.
struct CertificateValidity {
  absl::Time begin;
  absl::Time end;
};

// Of the first certificate in a PEM file, which is the daemon's own. FAILED_PRECONDITION: the file cannot be
// read, or holds none.
absl::StatusOr<CertificateValidity> ReadCertificateValidity(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CERTIFICATE_VALIDITY_H_
