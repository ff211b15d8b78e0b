#include "client/cli/tls_file_checks.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"
#include "client/cli/process_options.h"
#include "client/lib/tls_certificate.h"

namespace tandem::cli {
namespace {

constexpr absl::Duration kFileExpiresSoon = absl::Hours(24 * 14);

}  // namespace

Findings CheckTlsFiles(int64_t pid, const std::string& root, absl::Time now, absl::TimeZone zone) {
  Findings findings;
  const ProcessOptions options(pid, root);
  const client::TlsFilePaths paths = {options.Path("tls-cert"), options.Path("tls-key"),
                                      options.Path("tls-client-ca")};
  if (paths.certificate.empty()) return findings;
  const absl::StatusOr<client::TlsCertificate> certificate = client::ReadTlsFiles(paths);
  if (!certificate.ok()) {
    AddProblem(&findings, "TLS files",
               absl::StrCat(certificate.status().message(),
                            "; the daemon keeps its old files, and would not start again"),
               "put the right files there; the daemon reads them by itself within seconds, and logs it");
    return findings;
  }
  struct stat info = {};
  if (stat(paths.key.c_str(), &info) == 0 && (info.st_mode & 007) != 0) {
    AddProblem(&findings, "TLS files",
               absl::StrFormat("other users may use the key %s (mode %04o), so the daemon refuses it",
                               paths.key, info.st_mode & 07777),
               absl::StrCat("chmod 600 ", paths.key));
    return findings;
  }
  const std::string end = FormatTimestamp(certificate->end, zone);
  if (certificate->end - now < kFileExpiresSoon) {
    AddProblem(&findings, "TLS files",
               absl::StrCat("the certificate ", paths.certificate,
                            certificate->end <= now ? " has expired on " : " expires on ", end),
               "put a new certificate there; the daemon reads it by itself within seconds");
  } else {
    AddFine(&findings, "TLS files", absl::StrCat("can be used; the certificate is valid until ", end));
  }
  return findings;
}

}  // namespace tandem::cli
