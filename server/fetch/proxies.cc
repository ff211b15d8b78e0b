#include "server/fetch/proxies.h"

#include <initializer_list>

#include "absl/strings/match.h"

namespace tandem {
namespace {

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::optional<std::string> value = environment(name); value.has_value()) return *std::move(value);
  }
  return "";
}

}  // namespace

const std::string& Proxies::For(absl::string_view url) const {
  static const std::string* const kNone = new std::string;
  if (absl::StartsWithIgnoreCase(url, "https://")) return https;
  return absl::StartsWithIgnoreCase(url, "http://") ? http : *kNone;
}

Proxies ReadProxies(const Environment& environment) {
  return {.http = FirstOf(environment, {"http_proxy", "all_proxy", "ALL_PROXY"}),
          .https = FirstOf(environment, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})};
}

}  // namespace tandem
