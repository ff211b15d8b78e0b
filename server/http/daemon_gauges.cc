#include "server/http/daemon_gauges.h"

#include <sys/statvfs.h>

#include <limits>

namespace tandem {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void AddDaemonGauges(const DaemonGauges& gauges, Metrics* metrics) {
  metrics->AddGauge("tandem_ready", "1 if the daemon is ready (see /readyz), else 0.",
                    [ready = gauges.ready] { return ready() ? 1.0 : 0.0; });
  metrics->AddGauge("tandem_cache_bytes", "Space of fetched data in the state folder.", gauges.cache_bytes);
  metrics->AddGauge("tandem_upload_bytes",
                    "Space of uploaded data in the state folder, including the rest of unfinished uploads.",
                    gauges.upload_bytes);
  metrics->AddGauge("tandem_newest_backup_age_seconds",
                    "Age of the newest backup of the database; infinite if there is none.",
                    [age = gauges.backup_age] { return absl::ToDoubleSeconds(age()); });
  const auto add_disk = [&](const char* name, const char* help, auto blocks) {
    metrics->AddGauge(name, help, [folder = gauges.state_folder, blocks] {
      struct statvfs disk = {};
      if (statvfs(folder.c_str(), &disk) != 0) return kUnknown;
      return static_cast<double>(blocks(disk)) * static_cast<double>(disk.f_frsize);
    });
  };
  add_disk("tandem_state_folder_free_bytes", "Free space for the daemon on the disk of the state folder.",
           [](const struct statvfs& disk) { return disk.f_bavail; });
  add_disk("tandem_state_folder_size_bytes", "Size of the disk of the state folder.",
           [](const struct statvfs& disk) { return disk.f_blocks; });
  if (gauges.certificate_expiry == nullptr) return;
  metrics->AddGauge("tandem_tls_certificate_expiry_timestamp_seconds",
                    "When the daemon's TLS certificate expires.", [expiry = gauges.certificate_expiry] {
                      const absl::Time time = expiry();
                      return time == absl::InfiniteFuture() ? kUnknown
                                                            : static_cast<double>(absl::ToUnixSeconds(time));
                    });
}

}  // namespace tandem
