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
#include "server/daemon/cluster_part.h"
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
#include "server/sweeps/sweep_pruner.h"
#include "server/workers/dataset_workers.h"
#include "server/workers/gpu_prober.h"
#include "server/workers/job_disk_use.h"
#include "server/workers/model_workers.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/supervisor.h"

namespace tandem {

// The composition root: the only class that knows all parts of the daemon. Starts the parts in the order of
// their dependencies: the state folder's lock, the store, events and jobs, devices and the leases of an
// earlier daemon's jobs, workers, and last the public server. Stops the parts in reverse order. Workers keep
// running.
class Daemon {
 public:
  // `lifecycle` and `service_manager` must outlive the daemon. Errors name the wrong option, file or address.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options, Lifecycle* lifecycle,
                                                       const ServiceManager* service_manager);
  // Calls Stop.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Returns for example "127.0.0.1:7447", with the real port.
  std::string address() const { return server_->address().ToString(); }
  const std::string& state_folder() const { return state_folder_->path(); }
  // Returns the address of metrics; null if no metrics are served.
  const ListenAddress* metrics_address() const { return monitoring_.address(); }
  std::string token_file() const { return state_folder_->path() + "/token"; }

  // Returns true if the database was found damaged or missing. The next daemon on the folder repairs the
  // database.
  bool is_damaged() const { return is_damaged_ || is_lost_; }
  // Returns true while the daemon saves the content of a removed or replaced database, which would be lost
  // with the process.
  bool is_saving() const { return is_saving_; }

  // Refuses new work, ends streams with UNAVAILABLE, and closes everything, within 5 seconds, or later if
  // is_saving. Idempotent.
  void Stop();

 private:
  // More threads than processors, because the threads also wait for disks and for processes that read data
  // sets.
  static constexpr int kUserPoolThreads = 8;

  Daemon(Lifecycle* lifecycle, const ServiceManager* service_manager)
      : lifecycle_(lifecycle), service_manager_(service_manager) {}

  absl::Status OpenState(const DaemonOptions& options);
  // Handles a damaged database. Called on any thread.
  void OnDamage(const absl::Status& damage);
  // Handles a missing database file. `connection` still has its content. Returns true if the content was
  // saved. Called on the store's thread.
  bool OnLost(const absl::Status& loss, Connection* connection);
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const DaemonOptions& options);
  // Records the daemon's start or stop.
  void Audit(const char* event);
  // Returns the limits of workers' sandboxes.
  SandboxOptions SandboxFor(const DaemonOptions& options) const;
  absl::Status OpenDatasets(const DaemonOptions& options);
  absl::Status OpenData(const DaemonOptions& options);
  // Finds the devices, and creates the part that checks new jobs.
  absl::Status OpenAdmission(const DaemonOptions& options);
  // Creates the parts that start workers, and the scheduler. Starts no worker yet.
  absl::Status OpenWorkers(const DaemonOptions& options);
  // Has all parts told of each job's events.
  void ObserveJobs(const DaemonOptions& options);
  // Continues an earlier daemon's jobs, and starts the scheduler.
  absl::Status TakeOverJobs();
  // Creates the part that runs jobs on a cluster.
  absl::Status OpenCluster(const DaemonOptions& options, const WorkerSupervisor::Options& workers);
  absl::Status Serve(const DaemonOptions& options, const ListenAddress& address,
                     std::shared_ptr<grpc::ServerCredentials> credentials);
  // Creates the part that takes broken GPUs out of service. `checks` says how GPUs are checked.
  std::unique_ptr<GpuHealth> WatchGpus(GpuProber::Options checks);
  // Serves metrics at `address` if not null.
  absl::Status Monitor(const ListenAddress* address);
  // Returns all devices, with the drivers' current status.
  std::vector<v1::Device> RefreshedDevices();
  // Creates the part that deletes jobs that ended more than `keep` ago, and logs each deletion.
  std::unique_ptr<JobRetention> KeepJobsFor(absl::Duration keep);
  // Returns the jobs whose disk use is counted.
  std::vector<JobDiskUse::Owned> OwnedFolders();
  // Returns a function that gives each user's quota, from the user's token and the options.
  std::function<UserQuota(const std::string&)> Quotas(const DaemonOptions& options) const;
  std::string AddressFile() const { return state_folder_->path() + "/address"; }

  Lifecycle* const lifecycle_;
  const ServiceManager* const service_manager_;
  // Observes all following parts.
  Monitoring monitoring_;
  // In the order of their start.
  std::unique_ptr<StateFolder> state_folder_;
  // The folder that a cluster's nodes see. Empty without a cluster.
  std::string shared_folder_;
  std::unique_ptr<AuditLog> audit_;
  // Null without TLS.
  std::shared_ptr<TlsReloader> tls_;
  std::unique_ptr<GpuMonitor> gpus_;
  // Outlives all parts that may hold a call.
  std::unique_ptr<CallLimits> limits_;
  // Outlive the parts whose threads may wake a log's follower: the follower posts to the pool and leaves the
  // watcher.
  std::unique_ptr<FairPool> pool_;
  std::unique_ptr<FairPool> user_pool_;
  std::unique_ptr<FileWatcher> files_;
  std::unique_ptr<Backups> backups_;
  // The last restoration of the database, by this daemon or an earlier daemon.
  std::optional<Restoration> restoration_;
  std::atomic<bool> is_damaged_ = false;
  std::atomic<bool> is_lost_ = false;  // The database's file was removed or replaced.
  std::atomic<bool> is_saving_ = false;
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
  // Null without a cluster.
  std::unique_ptr<ClusterPart> cluster_;
  std::unique_ptr<StarterChoice> starter_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<GpuHealth> gpu_health_;
  std::unique_ptr<JobDrain> drain_;
  std::unique_ptr<SweepPruner> pruner_;
  std::unique_ptr<JobDiskUse> disk_;
  // Null: jobs are kept until somebody deletes them.
  std::unique_ptr<JobRetention> retention_;
  std::unique_ptr<WeightsFinder> weights_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<ModelWorkers> models_;
  std::unique_ptr<RpcServer> server_;
  // Null: backups are only made on request.
  std::unique_ptr<BackupSchedule> backup_schedule_;
  bool stopped_ = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_DAEMON_H_
