#ifndef TANDEM_SERVER_HTTP_HEALTH_PAGES_H_
#define TANDEM_SERVER_HTTP_HEALTH_PAGES_H_

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace tandem {

// "ok" with 200, or 503 with why not, a line each; for /healthz (Health::alive) and /readyz (Health::ready).
HttpPage HealthPage(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_HEALTH_PAGES_H_
