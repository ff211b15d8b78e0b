#include "server/auth/certificate_validity.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time, const std::string& path) {
  std::tm parts = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use the TLS certificate ", path,
                     ": it does not say when it is valid; use another certificate"));
  }
  return absl::FromTimeT(timegm(&parts));
}

constexpr absl::Duration kExpiresSoon = absl::Hours(24 * 14);

std::string Shown(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

}  // namespace

std::optional<CertificateTrouble> TroubleOf(const CertificateValidity& validity, absl::Time now) {
  if (validity.end <= now) {
    return CertificateTrouble{
        true, absl::StrCat("expired on ", Shown(validity.end), ", so clients refuse it; renew it")};
  }
  if (validity.begin > now) {
    return CertificateTrouble{true, absl::StrCat("is valid only from ", Shown(validity.begin),
                                                 ", so clients refuse it; check this machine's clock")};
  }
  if (validity.end - now < kExpiresSoon) {
    return CertificateTrouble{false, absl::StrCat("expires on ", Shown(validity.end), "; renew it")};
  }
  return std::nullopt;
}

absl::StatusOr<CertificateValidity> ReadCertificateValidity(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read the TLS certificate ", path, ": ", strerror(errno)));
  }
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_X509(file.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use the TLS certificate ", path, ": it has no certificate in PEM form"));
  }
  CertificateValidity validity;
  TANDEM_ASSIGN_OR_RETURN(validity.begin, TimeOf(X509_get0_notBefore(certificate.get()), path));
  TANDEM_ASSIGN_OR_RETURN(validity.end, TimeOf(X509_get0_notAfter(certificate.get()), path));
  return validity;
}

}  // namespace tandem
