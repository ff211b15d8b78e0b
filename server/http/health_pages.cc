#include "server/http/health_pages.h"

#include "absl/strings/str_cat.h"

namespace tandem {

HttpPage HealthPage(const absl::Status& status) {
  HttpPage response;
  response.status = status.ok() ? 200 : 503;
  response.body = status.ok() ? "ok\n" : absl::StrCat(status.message(), "\n");
  return response;
}

}  // namespace tandem
