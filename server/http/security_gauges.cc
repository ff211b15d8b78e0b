#include "server/http/security_gauges.h"

namespace tandem {

void AddSecurityGauges(const std::function<AuditLog::State()>& audit,
                       const std::function<TlsReloader::State()>& tls, Metrics* metrics) {
  if (audit != nullptr) {
    metrics->AddGauge("tandem_audit_failing",
                      "1 while the audit log cannot be written, for example on a full disk, else 0.",
                      [audit] { return audit().failing ? 1.0 : 0.0; });
    metrics->AddGauge("tandem_audit_waiting_records", "Records of the audit log that are not on disk yet.",
                      [audit] { return static_cast<double>(audit().waiting); });
    metrics->AddGauge("tandem_audit_lost_records", "Lost records of the audit log since the daemon's start.",
                      [audit] { return static_cast<double>(audit().lost); });
  }
  if (tls == nullptr) return;
  metrics->AddGauge("tandem_tls_files_failing",
                    "1 while changed TLS files cannot be used and the old ones stay in use, else 0.",
                    [tls] { return tls().failing ? 1.0 : 0.0; });
  metrics->AddGauge("tandem_tls_reloads", "Successful reloads of TLS files since the daemon's start.",
                    [tls] { return static_cast<double>(tls().reloads); });
}

}  // namespace tandem
