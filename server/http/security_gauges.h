#ifndef TANDEM_SERVER_HTTP_SECURITY_GAUGES_H_
#define TANDEM_SERVER_HTTP_SECURITY_GAUGES_H_

#include <functional>

#include "server/auth/audit_log.h"
#include "server/auth/tls_reloader.h"
#include "server/http/metrics.h"

namespace tandem {

// Adds metrics of the audit log and the TLS files. A null function means none. Both functions are called for
// each page, on any thread.
void AddSecurityGauges(const std::function<AuditLog::State()>& audit,
                       const std::function<TlsReloader::State()>& tls, Metrics* metrics);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_SECURITY_GAUGES_H_
