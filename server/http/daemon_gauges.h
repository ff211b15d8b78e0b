#ifndef TANDEM_SERVER_HTTP_DAEMON_GAUGES_H_
#define TANDEM_SERVER_HTTP_DAEMON_GAUGES_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/http/metrics.h"

namespace tandem {

// The gauges that are read for each page, on any thread. All except certificate_expiry must be set.
struct DaemonGauges {
  std::function<bool()> ready;
  std::function<double()> cache_bytes;
  std::function<double()> upload_bytes;
  // Infinite if no backup exists.
  std::function<absl::Duration()> backup_age;
  std::string state_folder;
  // Returns the TLS certificate's end of validity; infinite if unreadable. Null without TLS.
  std::function<absl::Time()> certificate_expiry;
};

// Adds the gauges to `metrics`, plus the size of the state folder's disk.
void AddDaemonGauges(const DaemonGauges& gauges, Metrics* metrics);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_DAEMON_GAUGES_H_
