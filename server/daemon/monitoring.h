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

// Whether `address` may serve metrics: beyond loopback only where that was asked for in plain words.
// FAILED_PRECONDITION says what to do.
absl::Status CheckMetricsListenPolicy(const ListenAddress& address, bool beyond_loopback);

// What tells others how the daemon is: metrics and health over HTTP, gRPC's health checks and the service
// manager, which all say the same. Thread-safe once started.
class Monitoring {
 public:
  // The parts of the daemon that are asked.
  struct Parts {
    Store* store = nullptr;
    Scheduler* scheduler = nullptr;
    const ServiceManager* service_manager = nullptr;
    // OK while the daemon serves calls; otherwise why not.
    std::function<absl::Status()> serving;
    // Tells gRPC's health checks; on any thread.
    std::function<void(bool)> set_serving;
    // All devices, with what their drivers say of them; may take a while.
    std::function<std::vector<v1::Device>()> devices;
    std::function<double()> cache_bytes;
    std::function<double()> upload_bytes;
    // Infinite where there is no backup; may take a while.
    std::function<absl::Duration()> backup_age;
    std::string state_folder;
    // Null: none, as far as Prometheus is concerned.
    const AuditLog* audit = nullptr;
    // Null: no TLS.
    const TlsReloader* tls = nullptr;
    int cuda_major = 0;
  };

  Monitoring();
  // Stop().
  ~Monitoring();
  Monitoring(const Monitoring&) = delete;
  Monitoring& operator=(const Monitoring&) = delete;

  // To be an observer of jobs from before the first event; outlives the store's writer.
  JobMetrics* jobs() { return &jobs_; }
  // To hear the store's commits and calls from the beginning; this outlives both.
  void Observe(Store* store);
  CallHooks call_hooks();

  // Begins to ask `parts`, which outlive Stop, and to serve pages at `address`, where it is not null. Once.
  // FAILED_PRECONDITION: it cannot listen there.
  absl::Status Start(Parts parts, const ListenAddress* address);
  // Asks and serves no more. Idempotent.
  void Stop();

  // Where pages are served; null: nowhere.
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
  // What the service manager shows; the monitor's thread's alone.
  std::string shown_;
  std::unique_ptr<HealthMonitor> health_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_MONITORING_H_
