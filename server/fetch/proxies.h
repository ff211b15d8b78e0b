#ifndef TANDEM_SERVER_FETCH_PROXIES_H_
#define TANDEM_SERVER_FETCH_PROXIES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/fetch/s3_config.h"

namespace tandem {

// The proxies of requests, by the requested URL's scheme. Empty: no proxy.
struct Proxies {
  std::string http;
  std::string https;

  const std::string& For(absl::string_view url) const;
};

// Reads the variables that libcurl reads, in this order: https_proxy and HTTPS_PROXY for https, only
// http_proxy for http, then all_proxy and ALL_PROXY for both.
Proxies ReadProxies(const Environment& environment);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_PROXIES_H_
