#include "server/auth/listen_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem {

std::string ListenAddress::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool ListenAddress::IsLoopback() const {
  if (absl::EqualsIgnoreCase(host, "localhost")) return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6);
  }
  return false;
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const auto error = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot use the address '", text, "': it ", problem,
                     "; write HOST:PORT, such as 127.0.0.1:7447 or [::1]:7447"));
  };
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return error("has no port");
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  } else if (absl::StrContains(host, ':')) {
    return error("has more than one colon; put an IPv6 address in brackets");
  }
  if (host.empty()) return error("has no host");
  ListenAddress address;
  address.host = std::string(host);
  if (!absl::SimpleAtoi(port, &address.port) || address.port < 0 || address.port > 65535) {
    return error(absl::StrCat("has the port '", port, "', which is not a number from 0 to 65535"));
  }
  return address;
}

absl::Status CheckListenPolicy(const ListenAddress& address, bool tls, bool insecure_beyond_loopback) {
  if (tls || insecure_beyond_loopback || address.IsLoopback()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", address.ToString(),
                   " without TLS: other machines can reach it, and anyone who sees the traffic can read the "
                   "token; give --tls-cert and --tls-key, or listen on 127.0.0.1. If the network is trusted, "
                   "give --insecure-listen-beyond-loopback"));
}

}  // namespace tandem
