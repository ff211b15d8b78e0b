#ifndef TANDEM_SERVER_DAEMON_DAEMON_H_
#define TANDEM_SERVER_DAEMON_DAEMON_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/weights_finder.h"
#include "server/auth/audit_log.h"
#include "server/auth/authenticator.h"
#include "server/auth/call_limits.h"
#include "server/auth/listen_policy.h"
#include "server/auth/tls_reloader.h"
#include "server/auth/token_registry.h"
#include "server/daemon/gpu_health.h"
#include "server/daemon/monitoring.h"
#include "server/daemon/options.h"
#include "server/daemon/service_manager.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/events/event_hub.h"
#include "server/fetch/cache.h"
#include "server/fetch/fetcher.h"
#include "server/fetch/transport.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_retention.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/file_watcher.h"
#include "server/rpc/job_drain.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/rpc_server.h"
#include "server/scheduler/backfill_policy.h"
#include "server/scheduler/gpu_monitor.h"
#include "server/scheduler/inventory.h"
#include "server/scheduler/scheduler.h"
#include "server/store/backup_schedule.h"
#include "server/store/backups.h"
#include "server/store/recovery.h"
#include "server/store/state_folder.h"
#include "server/store/store.h"
#include "server/workers/dataset_workers.h"
#include "server/workers/gpu_prober.h"
#include "server/workers/job_disk_use.h"
#include "server/workers/model_workers.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/supervisor.h"

namespace tandem {

// A daemon: the only place that knows all of its parts. It comes up in the order in which they depend on each
// other: the state folder's lock, the store, events and jobs, devices and the leases of jobs that an earlier
// daemon left, their workers, and last the public server. It goes down in the reverse order, and workers go
// on.
class Daemon {
 public:
  // `lifecycle` and `service_manager` outlive the daemon. Errors name the option, file or address at fault.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options, Lifecycle* lifecycle,
                                                       const ServiceManager* service_manager);
  // Stop().
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // "127.0.0.1:7447", with the port that was found.
  std::string address() const { return server_->address().ToString(); }
  const std::string& state_folder() const { return state_folder_->path(); }
  // Where metrics are served; null: nowhere.
  const ListenAddress* metrics_address() const { return monitoring_.address(); }
  std::string token_file() const { return state_folder_->path() + "/token"; }

  // Whether it stops because its database is damaged or gone: the next daemon on the folder mends it.
  bool is_damaged() const { return is_damaged_; }

  // Refuses new work, ends streams with UNAVAILABLE, and closes everything, within 5 seconds. Idempotent.
  void Stop();

 private:
  // More than the processors: they wait for disks, and for processes that read data sets, too.
  static constexpr int kUserPoolThreads = 8;

  Daemon(Lifecycle* lifecycle, const ServiceManager* service_manager)
      : lifecycle_(lifecycle), service_manager_(service_manager) {}

  absl::Status OpenState(const DaemonOptions& options);
  // The database turned out to be damaged. On any thread.
  void OnDamage(const absl::Status& damage);
  // The database's file is gone, and `connection` has all of it. Whether that is saved. On the store's
  // thread.
  bool OnLost(const absl::Status& loss, Connection* connection);
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const DaemonOptions& options);
  // That it starts or stops.
  void Audit(const char* event);
  // How workers are confined.
  SandboxOptions SandboxFor(const DaemonOptions& options) const;
  absl::Status OpenDatasets(const DaemonOptions& options);
  absl::Status OpenData(const DaemonOptions& options);
  absl::Status TakeOverJobs(const DaemonOptions& options);
  absl::Status Serve(const DaemonOptions& options, const ListenAddress& address,
                     std::shared_ptr<grpc::ServerCredentials> credentials);
  // What takes GPUs out of service, which makes its checks so.
  std::unique_ptr<GpuHealth> WatchGpus(GpuProber::Options checks);
  // Serves metrics at `address`, where it is not null.
  absl::Status Monitor(const ListenAddress* address);
  // All devices, with what their drivers say of them.
  std::vector<v1::Device> RefreshedDevices();
  // What deletes jobs that ended so long ago, and says so.
  std::unique_ptr<JobRetention> KeepJobsFor(absl::Duration keep);
  // The jobs that there are, for the count of the disk's use.
  std::vector<JobDiskUse::Owned> OwnedFolders();
  // What each user may have, by the user's token and the options.
  std::function<UserQuota(const std::string&)> Quotas(const DaemonOptions& options) const;
  std::string AddressFile() const { return state_folder_->path() + "/address"; }

  Lifecycle* const lifecycle_;
  const ServiceManager* const service_manager_;
  // Hears of all that follow.
  Monitoring monitoring_;
  // In the order in which they come up.
  std::unique_ptr<StateFolder> state_folder_;
  std::unique_ptr<AuditLog> audit_;
  // Null: no TLS.
  std::shared_ptr<TlsReloader> tls_;
  std::unique_ptr<GpuMonitor> gpus_;
  // Before whatever may still have a call.
  std::unique_ptr<CallLimits> limits_;
  // Before those whose threads may still wake a log's follower, which posts to the pool and leaves the
  // watcher.
  std::unique_ptr<FairPool> pool_;
  std::unique_ptr<FairPool> user_pool_;
  std::unique_ptr<FileWatcher> files_;
  std::unique_ptr<Backups> backups_;
  // What was last done to the database, by this daemon or before it.
  std::optional<Restoration> restoration_;
  std::atomic<bool> is_damaged_ = false;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TokenRegistry> tokens_;
  std::shared_ptr<const Authenticator> authenticator_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<JobMachine> jobs_;
  std::unique_ptr<Cache> cache_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Fetcher> fetcher_;
  std::unique_ptr<DatasetWorkers> dataset_workers_;
  std::unique_ptr<DatasetCatalog> datasets_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<DatasetRegistry> registry_;
  std::unique_ptr<Inventory> inventory_;
  const BackfillPolicy policy_;
  std::unique_ptr<WorkerSupervisor> workers_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<GpuHealth> gpu_health_;
  std::unique_ptr<JobDrain> drain_;
  std::unique_ptr<JobDiskUse> disk_;
  // Null: jobs stay until somebody deletes them.
  std::unique_ptr<JobRetention> retention_;
  std::unique_ptr<WeightsFinder> weights_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<ModelWorkers> models_;
  std::unique_ptr<RpcServer> server_;
  // Null: none are made without being asked for.
  std::unique_ptr<BackupSchedule> backup_schedule_;
  bool stopped_ = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_DAEMON_H_
