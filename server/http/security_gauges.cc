#include "server/http/security_gauges.h"

namespace tandem {

void AddSecurityGauges(const std::function<AuditLog::State()>& audit,
                       const std::function<TlsReloader::State()>& tls, Metrics* metrics) {
  if (audit != nullptr) {
    metrics->AddGauge("tandem_audit_failing",
                      "1 while the audit log cannot be written, as on a full disk, else 0.",
                      [audit] { return audit().failing ? 1.0 : 0.0; });
    metrics->AddGauge("tandem_audit_waiting_records",
                      "Records of the audit log that are not on the disk yet.",
                      [audit] { return static_cast<double>(audit().waiting); });
    metrics->AddGauge("tandem_audit_lost_records",
                      "Records of the audit log that were lost since the daemon began.",
                      [audit] { return static_cast<double>(audit().lost); });
  }
  if (tls == nullptr) return;
  metrics->AddGauge(
      "tandem_tls_files_failing",
      "1 while the TLS files changed and cannot be used, so that those from before are, else 0.",
      [tls] { return tls().failing ? 1.0 : 0.0; });
  metrics->AddGauge("tandem_tls_reloads", "Times that changed TLS files were taken since the daemon began.",
                    [tls] { return static_cast<double>(tls().reloads); });
}

}  // namespace tandem
