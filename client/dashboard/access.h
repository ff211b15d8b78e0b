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
// other sites in the same browser, and of other accounts of the machine, must fail here. Thread-safe.
class Access {
 public:
  // Why a request is refused.
  struct Refusal {
    int status = 403;
    std::string text;
  };

  // `hosts` are the values of Host under which the page is known, such as "127.0.0.1:7449": a name of another
  // site that leads to this machine is none of them (DNS rebinding).
  explicit Access(std::vector<std::string> hosts);

  // The key that opens the page once: in the address "/?key=KEY".
  const std::string& key() const { return key_; }

  // Nothing if the request may be answered. The page itself may be opened from anywhere; everything else only
  // by the page.
  std::optional<Refusal> Check(const WebRequest& request) const;

  // Exchanges a key, once, for the value of a Set-Cookie header. None: the key is wrong or was used.
  std::optional<std::string> Exchange(absl::string_view key);

 private:
  const std::vector<std::string> hosts_;
  const std::string key_;
  const std::string secret_;
  // Names the port too: browsers keep cookies of a host whatever the port.
  const std::string cookie_name_;
  absl::Mutex mutex_;
  bool key_is_used_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_ACCESS_H_
