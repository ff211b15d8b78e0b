#include "server/fetch/fetch_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"

namespace tandem {
namespace {

struct Block {
  uint32_t address;
  int bits;
};

// IANA's special-purpose registry (RFC 6890 and later), plus multicast and reserved addresses.
constexpr std::array<Block, 15> kSpecial = {{
    {0x00000000, 8},   // This network.
    {0x0a000000, 8},   // Private.
    {0x64400000, 10},  // Shared by a carrier's customers.
    {0x7f000000, 8},   // Loopback.
    {0xa9fe0000, 16},  // Link-local, where clouds have their metadata.
    {0xac100000, 12},  // Private.
    {0xc0000000, 24},  // IETF protocols.
    {0xc0000200, 24},  // Documentation.
    {0xc0586300, 24},  // 6to4 relays.
    {0xc0a80000, 16},  // Private.
    {0xc6120000, 15},  // Benchmarks.
    {0xc6336400, 24},  // Documentation.
    {0xcb007100, 24},  // Documentation.
    {0xe0000000, 4},   // Multicast.
    {0xf0000000, 4},   // Reserved, and broadcast.
}};

bool IsPublicV4(uint32_t address) {
  for (const Block& block : kSpecial) {
    if ((address ^ block.address) >> (32 - block.bits) == 0) return false;
  }
  return true;
}

uint32_t V4At(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

bool IsPublicV6(const uint8_t* b) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static constexpr uint8_t kTranslated[12] = {0, 0x64, 0xff, 0x9b};
  // These IPv6 addresses contain an IPv4 address.
  if (memcmp(b, kMapped, 12) == 0 || memcmp(b, kTranslated, 12) == 0) return IsPublicV4(V4At(b + 12));
  if (b[0] == 0x20 && b[1] == 0x02) return IsPublicV4(V4At(b + 2));
  // Allow global unicast, except IETF protocols (such as Teredo) and documentation.
  if ((b[0] & 0xe0) != 0x20) return false;
  if (b[0] == 0x20 && b[1] == 0x01 && (b[2] & 0xfe) == 0) return false;
  if (b[0] == 0x20 && b[1] == 0x01 && b[2] == 0x0d && b[3] == 0xb8) return false;
  return !(b[0] == 0x3f && b[1] == 0xff);
}

// Returns nullopt if `host` is no numeric address; otherwise true if the address is public.
std::optional<bool> IsPublicNumber(const std::string& host) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  // Parse like the system's resolver: "127.1", "0x7f000001" and "2130706433" are also addresses.
  if (inet_aton(host.c_str(), &v4.sin_addr) != 0)
    return IsPublicAddress(reinterpret_cast<const sockaddr*>(&v4));
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  const std::string without_zone = host.substr(0, host.find('%'));
  if (inet_pton(AF_INET6, without_zone.c_str(), &v6.sin6_addr) == 1) {
    return IsPublicAddress(reinterpret_cast<const sockaddr*>(&v6));
  }
  return std::nullopt;
}

}  // namespace

bool IsPublicAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return IsPublicV4(ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    return IsPublicV6(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr.s6_addr);
  }
  return false;
}

absl::StatusOr<FetchPolicy> FetchPolicy::Parse(const std::vector<std::string>& patterns) {
  FetchPolicy policy;
  for (const std::string& pattern : patterns) {
    absl::string_view rest = pattern;
    if (pattern == "none") {
      if (patterns.size() > 1) return absl::InvalidArgumentError("'none' must be the only value");
    } else if (pattern == "public") {
      policy.public_ = true;
    } else if (absl::ConsumePrefix(&rest, "s3://")) {
      const size_t slash = std::min(rest.find('/'), rest.size());
      if (slash == 0)
        return absl::InvalidArgumentError(
            absl::StrCat("'", pattern, "' names no bucket; s3://* means any bucket"));
      policy.buckets_.push_back({std::string(rest.substr(0, slash)),
                                 std::string(slash < rest.size() ? rest.substr(slash + 1) : "")});
    } else {
      Host host;
      host.below = absl::ConsumePrefix(&rest, "*.");
      const auto read_port = [&host](absl::string_view text) {
        return absl::SimpleAtoi(text, &host.port) && host.port >= 1 && host.port <= 65535;
      };
      // An IPv6 address without brackets has colons, and so no port.
      const size_t bracket = rest.find(']');
      const size_t colon = rest.rfind(':');
      if (absl::StartsWith(rest, "[") && bracket != absl::string_view::npos) {
        if (bracket + 1 < rest.size() && (rest[bracket + 1] != ':' || !read_port(rest.substr(bracket + 2)))) {
          return absl::InvalidArgumentError(absl::StrCat("'", pattern, "' is not HOST:PORT"));
        }
        rest = rest.substr(1, bracket - 1);
      } else if (colon != absl::string_view::npos && rest.find(':') == colon) {
        if (!read_port(rest.substr(colon + 1))) {
          return absl::InvalidArgumentError(absl::StrCat("'", pattern, "' is not HOST:PORT"));
        }
        rest = rest.substr(0, colon);
      }
      host.name = absl::AsciiStrToLower(rest);
      if (host.name.empty() || host.name.find_first_of("/*@ ") != std::string::npos) {
        return absl::InvalidArgumentError(absl::StrCat("'", pattern,
                                                       "' must be one of: public, none, HOST, HOST:PORT, "
                                                       "*.DOMAIN, s3://BUCKET, s3://BUCKET/PREFIX, s3://*"));
      }
      policy.hosts_.push_back(std::move(host));
    }
  }
  return policy;
}

FetchPolicy FetchPolicy::With(absl::string_view host, int port) const {
  FetchPolicy wider = *this;
  wider.hosts_.push_back({std::string(host), /*below=*/false, port});
  return wider;
}

FetchPolicy::Access FetchPolicy::ForHost(absl::string_view host, int port) const {
  for (const Host& allowed : hosts_) {
    const bool matches =
        allowed.below ? absl::EndsWith(host, absl::StrCat(".", allowed.name)) : host == allowed.name;
    if (matches && (allowed.port == 0 || allowed.port == port)) return Access::kAny;
  }
  if (!public_ || host == "localhost" || absl::EndsWith(host, ".localhost") ||
      !IsPublicNumber(std::string(host)).value_or(true)) {
    return Access::kNone;
  }
  return Access::kPublic;
}

bool FetchPolicy::AllowsObject(absl::string_view bucket, absl::string_view key) const {
  for (const Bucket& allowed : buckets_) {
    if ((allowed.name == "*" || allowed.name == bucket) && absl::StartsWith(key, allowed.prefix)) return true;
  }
  return false;
}

absl::Status FetchPolicy::Check(const DataUrl& url) const {
  if (url.is_s3() ? AllowsObject(url.host, url.key) : ForHost(url.host, url.port) != Access::kNone) {
    return absl::OkStatus();
  }
  const std::string pattern = url.is_s3() ? absl::StrCat("s3://", url.host) : url.host;
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          "is ", url.shown,
          ", but this daemon may not fetch from there; its owner can allow it with --fetch-from ", pattern,
          ", or put the data into a data folder")),
      "FETCH_NOT_ALLOWED");
}

}  // namespace tandem
