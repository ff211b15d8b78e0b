#ifndef TANDEM_CLIENT_DASHBOARD_ACCESS_H_
#define TANDEM_CLIENT_DASHBOARD_ACCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/dashboard/web_server.h"

namespace tandem::dashboard {

// Decides which requests come from the user's own page. A request acts with the user's token. So requests of
// other sites in the same browser, and of other accounts of the machine, must fail here. An account that can
// list the user's processes may take the key before the browser uses it. The browser then shows an error. A
// browser sends this host's cookies to servers on all ports of this host. So the user must not visit a server
// of another account. Thread-safe.
class Access {
 public:
  // Why a request is refused.
  struct Refusal {
    int status = 403;
    std::string text;
  };

  // `hosts` are the accepted values of Host, such as "127.0.0.1:7449". They exclude names of other sites that
  // lead to this machine (DNS rebinding).
  explicit Access(std::vector<std::string> hosts);

  // Returns the key that opens the page once, in the address "/?key=KEY".
  const std::string& key() const { return key_; }

  // Returns nothing if the request may be answered. Any site may open the page itself. Only the page may make
  // other requests.
  std::optional<Refusal> Check(const WebRequest& request) const;

  // Exchanges a key, once, for the value of a Set-Cookie header. Returns nothing if the key is wrong or was
  // used.
  std::optional<std::string> Exchange(absl::string_view key);

 private:
  const std::vector<std::string> hosts_;
  const std::string key_;
  const std::string secret_;
  // The name includes the port, because browsers share a host's cookies among all ports.
  const std::string cookie_name_;
  absl::Mutex mutex_;
  bool key_is_used_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_ACCESS_H_
