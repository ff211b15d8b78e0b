#ifndef TANDEM_SERVER_HTTP_HEALTH_PAGES_H_
#define TANDEM_SERVER_HTTP_HEALTH_PAGES_H_

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace tandem {

// Returns "ok" with status 200, or the error with status 503, in one line. For /healthz (Health::alive) and
// /readyz (Health::ready).
HttpPage HealthPage(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_HEALTH_PAGES_H_
