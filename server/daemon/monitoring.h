#ifndef TANDEM_SERVER_DAEMON_MONITORING_H_
#define TANDEM_SERVER_DAEMON_MONITORING_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/auth/audit_log.h"
#include "server/auth/listen_policy.h"
#include "server/auth/tls_reloader.h"
#include "server/daemon/service_manager.h"
#include "server/http/device_metrics.h"
#include "server/http/health_monitor.h"
#include "server/http/http_server.h"
#include "server/http/job_metrics.h"
#include "server/http/metrics.h"
#include "server/http/process_metrics.h"
#include "server/http/service_metrics.h"
#include "server/rpc/call_hooks.h"
#include "server/scheduler/scheduler.h"
#include "server/store/store.h"

namespace tandem {

// Returns OK if metrics can and may be served at `address`. Beyond loopback, an explicit option is required.
// FAILED_PRECONDITION names the remedy.
absl::Status CheckMetricsListenPolicy(const ListenAddress& address, bool beyond_loopback);

// Reports the daemon's state: metrics and health over HTTP, gRPC's health checks, and the service manager.
// All of them report the same health. Thread-safe after Start.
class Monitoring {
 public:
  // The parts of the daemon that Monitoring reads.
  struct Parts {
    Store* store = nullptr;
    Scheduler* scheduler = nullptr;
    const ServiceManager* service_manager = nullptr;
    // Returns OK while the daemon serves calls; otherwise the reason.
    std::function<absl::Status()> serving;
    // Sets the state of gRPC's health checks. Called on any thread.
    std::function<void(bool)> set_serving;
    // Returns all devices with the drivers' status. May block.
    std::function<std::vector<v1::Device>()> devices;
    std::function<double()> cache_bytes;
    std::function<double()> upload_bytes;
    // Returns the age of the newest backup; infinite if none exists. May block.
    std::function<absl::Duration()> backup_age;
    std::string state_folder;
    // Returns true while the store saves the content of a removed database, and so answers late.
    std::function<bool()> is_saving;
    // Null: no metrics of the audit log.
    const AuditLog* audit = nullptr;
    // Null without TLS.
    const TlsReloader* tls = nullptr;
    int cuda_major = 0;
  };

  Monitoring();
  // Calls Stop.
  ~Monitoring();
  Monitoring(const Monitoring&) = delete;
  Monitoring& operator=(const Monitoring&) = delete;

  // An observer of jobs. Register it before the first event. Monitoring must outlive the store's writer.
  JobMetrics* jobs() { return &jobs_; }
  // Observes commits of the store. Call before the first commit. Monitoring must outlive the store.
  void Observe(Store* store);
  // Returns hooks that observe calls. Monitoring must outlive the server.
  CallHooks call_hooks();

  // Starts to check `parts`, which must exist until Stop, and to serve pages at `address` if not null. Call
  // once. FAILED_PRECONDITION: cannot listen at `address`.
  absl::Status Start(Parts parts, const ListenAddress* address);
  // Stops checking and serving. Idempotent.
  void Stop();

  // Returns the address of the pages; null if none.
  const ListenAddress* address() const { return http_ == nullptr ? nullptr : &http_->address(); }

 private:
  void OnRound(const Health& health);

  Metrics metrics_;
  JobMetrics jobs_;
  ServiceMetrics service_;

  // Set once by Start.
  Parts parts_;
  std::unique_ptr<DeviceMetrics> devices_;
  std::unique_ptr<ProcessMetrics> process_;
  std::unique_ptr<HttpServer> http_;
  // The text that the service manager shows. Only the monitor's thread uses it.
  std::string shown_;
  std::unique_ptr<HealthMonitor> health_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_MONITORING_H_
