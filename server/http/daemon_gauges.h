#ifndef TANDEM_SERVER_HTTP_DAEMON_GAUGES_H_
#define TANDEM_SERVER_HTTP_DAEMON_GAUGES_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/http/metrics.h"

namespace tandem {

// What of the daemon is found out when Prometheus asks; on any thread. All but the last must be set.
struct DaemonGauges {
  std::function<bool()> ready;
  std::function<double()> cache_bytes;
  std::function<double()> upload_bytes;
  // Infinite where there is no backup.
  std::function<absl::Duration()> backup_age;
  std::string state_folder;
  // Until when the TLS certificate is valid, or infinitely far where that cannot be read; null: there is
  // none.
  std::function<absl::Time()> certificate_expiry;
};

// Adds them to `metrics`, with the size of the state folder's disk.
void AddDaemonGauges(const DaemonGauges& gauges, Metrics* metrics);

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_DAEMON_GAUGES_H_
