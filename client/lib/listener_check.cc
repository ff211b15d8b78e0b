#include "client/lib/listener_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem::client {
namespace {

// An IPv6 address, or an IPv4 address mapped into IPv6. A socket of IPv6 accepts both.
using IpAddress = std::array<uint8_t, 16>;

constexpr char kListening[] = "0A";

IpAddress Mapped(uint32_t v4_in_network_order) {
  IpAddress address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  memcpy(&address[12], &v4_in_network_order, 4);
  return address;
}

bool IsUnspecified(const IpAddress& address) { return address == IpAddress{} || address == Mapped(0); }

// Returns the addresses that a connection to the host may use. Empty if a resolver decides.
std::vector<IpAddress> AddressesOf(const std::string& host) {
  IpAddress loopback6 = {};
  loopback6[15] = 1;
  const std::vector<IpAddress> loopback = {Mapped(htonl(INADDR_LOOPBACK)), loopback6};
  if (host == "localhost") return loopback;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    if (v4.s_addr == 0) return loopback;
    return {Mapped(v4.s_addr)};
  }
  IpAddress v6;
  if (inet_pton(AF_INET6, host.c_str(), v6.data()) != 1) return {};
  if (IsUnspecified(v6)) return loopback;
  return {v6};
}

// Parses "0100007F:1D17". The kernel prints words of network order as if they were in its own order.
struct Endpoint {
  IpAddress address;
  uint32_t port = 0;
};

std::optional<Endpoint> ParseEndpoint(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  Endpoint endpoint;
  if (parts.size() != 2 || !absl::SimpleHexAtoi(parts[1], &endpoint.port)) return std::nullopt;
  const absl::string_view digits = parts[0];
  if (digits.size() != 8 && digits.size() != 32) return std::nullopt;
  std::array<uint32_t, 4> words = {};
  for (size_t i = 0; i < digits.size() / 8; ++i) {
    if (!absl::SimpleHexAtoi(digits.substr(8 * i, 8), &words[i])) return std::nullopt;
  }
  if (digits.size() == 8) {
    endpoint.address = Mapped(words[0]);
  } else {
    memcpy(endpoint.address.data(), words.data(), endpoint.address.size());
  }
  return endpoint;
}

}  // namespace

absl::Status CheckListener(absl::string_view address, const std::vector<uid_t>& trusted,
                           const std::string& root) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return absl::OkStatus();
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  const std::vector<IpAddress> wanted = AddressesOf(std::string(host));
  if (wanted.empty()) return absl::OkStatus();
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(root + table);
    for (std::string line; std::getline(file, line);) {
      // sl local_address rem_address st queues timer retransmits uid ...
      const std::vector<absl::string_view> columns = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (columns.size() < 8 || columns[3] != kListening) continue;
      const std::optional<Endpoint> local = ParseEndpoint(columns[1]);
      uid_t user = 0;
      if (!local.has_value() || local->port != port || !absl::SimpleAtoi(columns[7], &user)) continue;
      if (!IsUnspecified(local->address) &&
          std::find(wanted.begin(), wanted.end(), local->address) == wanted.end()) {
        continue;
      }
      if (std::find(trusted.begin(), trusted.end(), user) == trusted.end()) {
        return absl::UnavailableError(
            absl::StrCat("cannot send the token: ", kStrangerListens, " (number ", user, ")"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::client
