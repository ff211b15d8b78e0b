#include "server/auth/certificate_validity.h"

#include <ctime>

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

}  // namespace

std::string ShownTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

std::optional<CertificateTrouble> TroubleOf(const CertificateValidity& validity, absl::Time now) {
  if (validity.end <= now) {
    return CertificateTrouble{
        true, absl::StrCat("expired on ", ShownTime(validity.end), ", so clients refuse it; renew it")};
  }
  if (validity.begin > now) {
    return CertificateTrouble{true, absl::StrCat("is valid only from ", ShownTime(validity.begin),
                                                 ", so clients refuse it; check this machine's clock")};
  }
  if (validity.end - now < kExpiresSoon) {
    return CertificateTrouble{false, absl::StrCat("expires on ", ShownTime(validity.end), "; renew it")};
  }
  return std::nullopt;
}

absl::StatusOr<CertificateValidity> ValidityOf(const X509& certificate, const std::string& path) {
  CertificateValidity validity;
  TANDEM_ASSIGN_OR_RETURN(validity.begin, TimeOf(X509_get0_notBefore(&certificate), path));
  TANDEM_ASSIGN_OR_RETURN(validity.end, TimeOf(X509_get0_notAfter(&certificate), path));
  return validity;
}

}  // namespace tandem
