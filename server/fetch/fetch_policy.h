#ifndef TANDEM_SERVER_FETCH_FETCH_POLICY_H_
#define TANDEM_SERVER_FETCH_FETCH_POLICY_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/fetch/data_url.h"

namespace tandem {

// Where the daemon may fetch from. Who may submit jobs can have the daemon ask for any URL, from within the
// daemon's own network: so what is not of the public Internet is refused unless the daemon's owner names it.
// Immutable, so thread-safe.
class FetchPolicy {
 public:
  enum class Access {
    kNone,
    // Where its name leads to an address of the public Internet.
    kPublic,
    // Wherever its name leads.
    kAny,
  };

  // Patterns, of which one must match: "HOST" or "HOST:PORT", where HOST may begin with "*." for all names
  // below it, and which may have private addresses; "public", any host with a public address; "s3://BUCKET"
  // or "s3://BUCKET/PREFIX", where BUCKET may be "*"; "none", alone, matches nothing. INVALID_ARGUMENT:
  // others.
  static absl::StatusOr<FetchPolicy> Parse(const std::vector<std::string>& patterns);

  // The same, and one host more, wherever its name leads.
  FetchPolicy With(absl::string_view host, int port) const;

  // Of http and https. An address in place of a name, or a name that can only be this machine's, is judged
  // here; where other names lead is for who connects.
  Access ForHost(absl::string_view host, int port) const;
  bool AllowsObject(absl::string_view bucket, absl::string_view key) const;

  // OK, or PERMISSION_DENIED with the reason FETCH_NOT_ALLOWED, in words that follow a field's name.
  absl::Status Check(const DataUrl& url) const;

 private:
  struct Host {
    std::string name;  // Behind "*." where `below`.
    bool below = false;
    int port = 0;  // 0: any.
  };
  struct Bucket {
    std::string name;
    std::string prefix;
  };

  bool public_ = false;
  std::vector<Host> hosts_;
  std::vector<Bucket> buckets_;
};

// Whether an IPv4 or IPv6 address is one of the public Internet: not of this machine, a private network, a
// link, a group, documentation, or one of those within IPv6.
bool IsPublicAddress(const sockaddr* address);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCH_POLICY_H_
