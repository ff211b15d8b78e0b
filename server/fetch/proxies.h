#ifndef TANDEM_SERVER_FETCH_PROXIES_H_
#define TANDEM_SERVER_FETCH_PROXIES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/fetch/s3_config.h"

namespace tandem {

// Through which proxy requests go, by the scheme of what they ask for. Empty: through none.
struct Proxies {
  std::string http;
  std::string https;

  const std::string& For(absl::string_view url) const;
};

// Reads the variables that libcurl reads, in its order: https_proxy, HTTPS_PROXY and, in small letters alone,
// http_proxy; for both, all_proxy and ALL_PROXY.
Proxies ReadProxies(const Environment& environment);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_PROXIES_H_
