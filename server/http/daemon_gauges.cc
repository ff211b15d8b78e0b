#include "server/http/daemon_gauges.h"

#include <sys/statvfs.h>

#include <limits>

namespace tandem {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void AddDaemonGauges(const DaemonGauges& gauges, Metrics* metrics) {
  metrics->AddGauge("tandem_ready", "1 where the daemon is ready, as /readyz says, else 0.",
                    [ready = gauges.ready] { return ready() ? 1.0 : 0.0; });
  metrics->AddGauge("tandem_cache_bytes", "What fetched data takes in the state folder.", gauges.cache_bytes);
  metrics->AddGauge("tandem_upload_bytes", "What uploaded data takes, or will, in the state folder.",
                    gauges.upload_bytes);
  metrics->AddGauge("tandem_newest_backup_age_seconds",
                    "Since the newest backup of the database was begun; infinite where there is none.",
                    [age = gauges.backup_age] { return absl::ToDoubleSeconds(age()); });
  const auto add_disk = [&](const char* name, const char* help, auto blocks) {
    metrics->AddGauge(name, help, [folder = gauges.state_folder, blocks] {
      struct statvfs disk = {};
      if (statvfs(folder.c_str(), &disk) != 0) return kUnknown;
      return static_cast<double>(blocks(disk)) * static_cast<double>(disk.f_frsize);
    });
  };
  add_disk("tandem_state_folder_free_bytes", "What the disk of the state folder has left for the daemon.",
           [](const struct statvfs& disk) { return disk.f_bavail; });
  add_disk("tandem_state_folder_size_bytes", "The size of that disk.",
           [](const struct statvfs& disk) { return disk.f_blocks; });
  if (gauges.certificate_expiry == nullptr) return;
  metrics->AddGauge(
      "tandem_tls_certificate_expiry_timestamp_seconds", "Until when the daemon's TLS certificate is valid.",
      [expiry = gauges.certificate_expiry] {
        const absl::Time time = expiry();
        return time == absl::InfiniteFuture() ? kUnknown : static_cast<double>(absl::ToUnixSeconds(time));
      });
}

}  // namespace tandem
