#include "server/daemon/monitoring.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/http/daemon_gauges.h"
#include "server/http/health_pages.h"
#include "server/http/security_gauges.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// The time between two checks of each part. Each check syncs the disk once.
constexpr absl::Duration kInterval = absl::Seconds(5);
// A part that does not answer for longer hangs. A healthy but flooded disk may stop for more than ten
// seconds.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr char kServes[] = "serves";
// With less free space no job starts, even if the database has room within its own files.
constexpr uintmax_t kLeastRoom = 1 << 20;

absl::Status CheckRoom(const std::string& state_folder) {
  std::error_code error;
  const std::filesystem::space_info disk = std::filesystem::space(state_folder, error);
  // Root may use the disk's reserve. Some file systems report no sizes.
  const uintmax_t free = geteuid() == 0 ? disk.free : disk.available;
  if (error || disk.capacity == 0 || free >= kLeastRoom) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk of ", state_folder, " is full: ", free, " bytes are free; make room"));
}

}  // namespace

absl::Status CheckMetricsListenPolicy(const ListenAddress& address, bool beyond_loopback) {
  if (absl::StrContains(address.host, ':') && !HttpServer::HasIpv6()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot serve metrics on ", address.ToString(),
                     ": the HTTP server of this build has no IPv6; listen on an IPv4 address, such as "
                     "127.0.0.1"));
  }
  if (beyond_loopback || address.IsLoopback()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot serve metrics on ", address.ToString(),
      ": other machines can reach it, and anyone there could read the names of jobs and devices and how busy "
      "they are; listen on 127.0.0.1, or give --metrics-beyond-loopback if they may be read"));
}

Monitoring::Monitoring() : jobs_(&metrics_), service_(&metrics_) {}

Monitoring::~Monitoring() { Stop(); }

void Monitoring::Observe(Store* store) {
  store->SetCommitObserver([this](absl::Duration duration, int writes, const absl::Status& status) {
    service_.OnCommit(duration, writes, status);
  });
}

CallHooks Monitoring::call_hooks() {
  CallHooks hooks;
  hooks.started = [this](absl::string_view method) { service_.OnCallStarted(method); };
  hooks.ended = [this](const EndedCall& call) {
    service_.OnCallEnded(call.method, call.status.code(), call.duration, call.is_stream);
  };
  return hooks;
}

absl::Status Monitoring::Start(Parts parts, const ListenAddress* address) {
  parts_ = std::move(parts);
  shown_ = kServes;
  HealthMonitor::Options options;
  options.interval = std::min(kInterval, parts_.service_manager->watchdog() / 4);
  options.patience = kPatience;
  options.serving = parts_.serving;
  options.on_round = [this](const Health& health) { OnRound(health); };
  health_ = std::make_unique<HealthMonitor>(
      std::move(options),
      std::vector<HealthMonitor::Part>{
          {"the store",
           [store = parts_.store](HealthMonitor::Answer answer) { store->Probe(std::move(answer)); },
           parts_.is_saving},
          {"the scheduler",
           [scheduler = parts_.scheduler](HealthMonitor::Answer answer) {
             scheduler->Ping([answer = std::move(answer)] { answer(absl::OkStatus()); });
           }},
          {"the state folder",
           [folder = parts_.state_folder](HealthMonitor::Answer answer) { answer(CheckRoom(folder)); }}});
  if (address == nullptr) return absl::OkStatus();

  devices_ = std::make_unique<DeviceMetrics>(parts_.devices);
  process_ = std::make_unique<ProcessMetrics>(parts_.cuda_major);
  metrics_.Add(devices_.get());
  metrics_.Add(process_.get());
  DaemonGauges gauges;
  gauges.ready = [this] { return health_->Now().ready.ok(); };
  gauges.cache_bytes = parts_.cache_bytes;
  gauges.upload_bytes = parts_.upload_bytes;
  gauges.backup_age = parts_.backup_age;
  gauges.state_folder = parts_.state_folder;
  if (parts_.tls != nullptr)
    gauges.certificate_expiry = [tls = parts_.tls] { return tls->state().valid_until; };
  AddDaemonGauges(gauges, &metrics_);
  std::function<AuditLog::State()> audit;
  std::function<TlsReloader::State()> tls;
  if (parts_.audit != nullptr) audit = [this] { return parts_.audit->state(); };
  if (parts_.tls != nullptr) tls = [this] { return parts_.tls->state(); };
  AddSecurityGauges(audit, tls, &metrics_);
  TANDEM_ASSIGN_OR_RETURN(
      http_, HttpServer::Start(*address, {{"/metrics", [this] { return metrics_.Page(); }},
                                          {"/healthz", [this] { return HealthPage(health_->Now().alive); }},
                                          {"/readyz", [this] { return HealthPage(health_->Now().ready); }}}));
  return absl::OkStatus();
}

void Monitoring::OnRound(const Health& health) {
  // If a part hangs, stop sending Alive, so that the service manager restarts the daemon.
  if (health.alive.ok()) parts_.service_manager->Alive();
  parts_.set_serving(health.ready.ok());
  // While the daemon stops, it reports its own state.
  if (!parts_.serving().ok()) return;
  const std::string show = health.ready.ok() ? kServes : absl::StrCat("not ready: ", health.ready.message());
  if (show == shown_) return;
  shown_ = show;
  parts_.service_manager->Show(show);
  if (health.ready.ok()) {
    spdlog::info("ready again");
  } else {
    spdlog::error("{}", show);
  }
}

void Monitoring::Stop() {
  http_ = nullptr;
  health_ = nullptr;
}

}  // namespace tandem
