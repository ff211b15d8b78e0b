#ifndef TANDEM_SERVER_FETCH_FETCH_POLICY_H_
#define TANDEM_SERVER_FETCH_FETCH_POLICY_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/fetch/data_url.h"

namespace tandem {

// The places from which the daemon may fetch. A user who submits jobs can make the daemon ask for any URL
// from inside its own network. So only public Internet addresses are allowed, unless the daemon's owner names
// others. Immutable, so thread-safe.
class FetchPolicy {
 public:
  enum class Access {
    kNone,
    // Allowed if the name leads to a public Internet address.
    kPublic,
    // Allowed at any address.
    kAny,
  };

  // Parses patterns; a URL is allowed if it matches a pattern. INVALID_ARGUMENT for other patterns.
  // - "HOST" or "HOST:PORT": also at private addresses. HOST may begin with "*." for all names below it.
  // - "public": any host at a public address.
  // - "s3://BUCKET" or "s3://BUCKET/PREFIX": BUCKET may be "*".
  // - "none", alone: nothing.
  static absl::StatusOr<FetchPolicy> Parse(const std::vector<std::string>& patterns);

  // Returns this policy plus one host, allowed at any address.
  FetchPolicy With(absl::string_view host, int port) const;

  // Returns the access for http and https. Decides numeric addresses, and names that can only mean this
  // machine. The caller must check the addresses of other names when it connects.
  Access ForHost(absl::string_view host, int port) const;
  bool AllowsObject(absl::string_view bucket, absl::string_view key) const;

  // OK, or PERMISSION_DENIED with the reason FETCH_NOT_ALLOWED. The message completes a sentence that begins
  // with a field's name.
  absl::Status Check(const DataUrl& url) const;

 private:
  struct Host {
    std::string name;  // If `below`, the part after "*.".
    bool below = false;
    int port = 0;  // 0: any port.
  };
  struct Bucket {
    std::string name;
    std::string prefix;
  };

  bool public_ = false;
  std::vector<Host> hosts_;
  std::vector<Bucket> buckets_;
};

// Returns true if an IPv4 or IPv6 address belongs to the public Internet. Addresses of this machine, private
// networks, links, multicast and documentation are not public, nor are IPv6 addresses that contain such
// addresses.
bool IsPublicAddress(const sockaddr* address);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCH_POLICY_H_
