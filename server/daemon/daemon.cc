#include "server/daemon/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/backend/collective_time_limit.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "engine/base/version.h"
#include "server/auth/authenticator.h"
#include "server/auth/listen_policy.h"
#include "server/auth/server_credentials.h"
#include "server/auth/token.h"
#include "server/daemon/restoration.h"
#include "server/rpc/call_audit.h"
#include "server/scheduler/available_memory.h"
#include "server/scheduler/host_resources.h"
#include "server/scheduler/machine_devices.h"
#include "server/store/records.h"
#include "server/workers/leased_gpus.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/sandbox_support.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

constexpr char kDevicePriority[] = "TANDEM_DEVICE_PRIORITY";

// The number of threads that read the database, logs and artifacts for calls. Each user gets at most half of
// them.
constexpr int kPoolThreads = 4;
constexpr int kPoolThreadsEach = 2;
constexpr int kUserPoolThreadsEach = 2;
// The grace for calls in progress. The whole stop must take less than 5 seconds.
constexpr absl::Duration kCallGrace = absl::Seconds(2);
// The grace for watchers to receive the ends of jobs that a shutdown cancelled.
constexpr absl::Duration kWatcherGrace = absl::Milliseconds(500);
constexpr absl::Duration kWorkerGrace = absl::Seconds(1);

// Returns nullopt if the environment does not have the variable.
std::optional<std::string> Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::unique_ptr<GpuMonitor> FindGpus() {
  GpuMonitor::Options options;
  options.nvml_path = Variable("TANDEM_NVML").value_or("");
  options.visible_devices = Variable("CUDA_VISIBLE_DEVICES");
  options.cuda_major = TANDEM_CUDA_MAJOR;
  std::unique_ptr<GpuMonitor> gpus = GpuMonitor::Open(options);
  for (const GpuMonitor::Note& note : gpus->notes()) {
    spdlog::log(note.is_warning ? spdlog::level::warn : spdlog::level::info, "{}", note.text);
  }
  for (size_t i = 0; i < gpus->gpus().size(); ++i) {
    const HostGpu& gpu = gpus->gpus()[i];
    spdlog::info("gpu:{} is there: {}, {:.1f} GiB, {}, driver {}", i, gpu.model,
                 static_cast<double>(gpu.status.total_memory_bytes()) / (int64_t{1} << 30), gpu.status.uuid(),
                 gpu.status.driver_version());
  }
  return gpus;
}

// Returns the device kinds for jobs that name no kind, from the environment.
absl::StatusOr<std::vector<v1::DeviceKind>> DevicePriority() {
  const char* text = getenv(kDevicePriority);
  absl::StatusOr<std::vector<v1::DeviceKind>> kinds = ParseDevicePriority(text == nullptr ? "" : text);
  if (kinds.ok()) return kinds;
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot use the environment's ", kDevicePriority, " '", text, "': ", kinds.status().message(),
      "; give device kinds, the preferred one first, such as 'gpu,cpu'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options, Lifecycle* lifecycle,
                                                      const ServiceManager* service_manager) {
  TANDEM_ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(options.listen));
  TANDEM_RETURN_IF_ERROR(
      CheckListenPolicy(address, !options.tls_cert.empty(), options.insecure_listen_beyond_loopback));
  std::optional<ListenAddress> metrics;
  if (!options.metrics_listen.empty()) {
    TANDEM_ASSIGN_OR_RETURN(metrics, ParseListenAddress(options.metrics_listen));
    TANDEM_RETURN_IF_ERROR(CheckMetricsListenPolicy(*metrics, options.metrics_beyond_loopback));
  }
  if (access(options.worker_program.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot run the worker program ",
                                                      options.worker_program, ": ", strerror(errno),
                                                      "; name it with --worker-program"));
  }
  if (options.worker_sandbox == "on" && !MissingOfSandbox().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot confine workers as --worker-sandbox=on requires: ", MissingOfSandbox(),
                     "; --worker-sandbox=best-effort confines them as far as the kernel can"));
  }
  std::unique_ptr<Daemon> daemon(new Daemon(lifecycle, service_manager));
  TANDEM_RETURN_IF_ERROR(daemon->OpenState(options));
  // Everything that can fail runs before the first worker starts.
  TANDEM_ASSIGN_OR_RETURN(std::string token, LoadOrCreateToken(daemon->token_file()));
  daemon->authenticator_ = std::make_shared<const Authenticator>(std::move(token), daemon->tokens_.get());
  TANDEM_ASSIGN_OR_RETURN(auto credentials, daemon->MakeCredentials(options));
  daemon->limits_ = std::make_unique<CallLimits>(daemon->Quotas(options), Clock::Real());
  TANDEM_RETURN_IF_ERROR(RpcServer::CheckAddress(address, "--listen"));
  if (metrics.has_value()) TANDEM_RETURN_IF_ERROR(RpcServer::CheckAddress(*metrics, "--metrics-listen"));
  TANDEM_RETURN_IF_ERROR(daemon->OpenAdmission(options));
  TANDEM_RETURN_IF_ERROR(daemon->OpenWorkers(options));
  daemon->ObserveJobs(options);
  TANDEM_RETURN_IF_ERROR(daemon->TakeOverJobs());
  TANDEM_RETURN_IF_ERROR(daemon->Serve(options, address, std::move(credentials)));
  TANDEM_RETURN_IF_ERROR(daemon->Monitor(metrics.has_value() ? &*metrics : nullptr));
  if (options.backup_every > absl::ZeroDuration()) {
    daemon->backup_schedule_ = std::make_unique<BackupSchedule>(
        daemon->backups_.get(), options.backup_every, Clock::Real(),
        [](const absl::StatusOr<v1::Backup>& made) {
          if (made.ok()) {
            spdlog::info("made a backup path={} bytes={}", made->path(), made->size_bytes());
          } else if (absl::IsCancelled(made.status())) {
            spdlog::info("stopped the daily backup: the daemon is shutting down");
          } else {
            spdlog::error("cannot make the daily backup, will try again soon: {}", made.status().ToString());
          }
        });
  }
  if (daemon->retention_ != nullptr) daemon->retention_->Start();
  // Write the address last: whoever finds it can use the whole daemon.
  // Readers of the file must never see a part of it. It has no use after a crash of the machine.
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(
      Env::Real(), daemon->AddressFile(),
      [&](WritableFile& file) { return file.Append(absl::StrCat(daemon->address(), "\n")); },
      {.durable = AtomicWrite::Durable::kNothing, .is_private = true}));
  daemon->Audit("start");
  return daemon;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Daemon::MakeCredentials(
    const DaemonOptions& options) {
  RefusalObserver on_refused = AuditRefusals(audit_.get());
  if (options.tls_cert.empty()) return PlainCredentials(authenticator_, std::move(on_refused));
  TANDEM_ASSIGN_OR_RETURN(tls_,
                          TlsReloader::Start({options.tls_cert, options.tls_key, options.tls_client_ca}));
  return TlsCredentials(tls_, authenticator_, std::move(on_refused));
}

void Daemon::Audit(const char* event) {
  AuditRecord record;
  record.event = event;
  record.version = kVersion;
  record.address = address();
  audit_->Add(std::move(record));
}

absl::Status Daemon::OpenAdmission(const DaemonOptions& options) {
  DeviceOptions device_options;
  device_options.cpu_devices = options.cpu_devices;
  device_options.cpu_threads = options.threads_per_cpu_device;
  device_options.reference_devices = options.reference_devices;
  device_options.memory_bytes = options.memory_bytes;
  HostResources host = ProbeHost();
  gpus_ = FindGpus();
  host.gpus = gpus_->gpus();
  TANDEM_ASSIGN_OR_RETURN(std::vector<v1::Device> devices, MakeDevices(device_options, host));
  inventory_ = std::make_unique<Inventory>(devices);
  TANDEM_RETURN_IF_ERROR(OpenData(options));
  TANDEM_RETURN_IF_ERROR(OpenDatasets(options));
  weights_ = std::make_unique<WeightsFinder>(
      datasets_.get(),
      [this](const std::string& name) -> absl::StatusOr<v1::Job> {
        const std::string id = JobId(name);
        if (id.empty()) return absl::NotFoundError("is not the name of a job");
        return jobs_->Get(id);
      },
      [this](const UploadedFile& file) { return uploads_->FindFile(file.upload, file.path); });
  TANDEM_ASSIGN_OR_RETURN(std::vector<v1::DeviceKind> priority, DevicePriority());
  // Workers inherit a wrong value and would not start.
  TANDEM_RETURN_IF_ERROR(CollectiveTimeLimit().status());
  admission_ = std::make_unique<SpecAdmission>(
      datasets_.get(), weights_.get(), std::move(devices), std::move(priority),
      GpuLimits{.memory_bytes = options.gpu_memory_limit, .workspace_bytes = options.gpu_workspace_limit},
      ClusterRules{.has_slurm = !shared_folder_.empty() && options.ssh_hosts.empty(),
                   .ssh_hosts = static_cast<int>(options.ssh_hosts.size()),
                   .allowed_arguments = options.slurm_allow_arguments,
                   .test = [this](const v1::JobSpec& spec) { return cluster_->Test(spec); }});
  return absl::OkStatus();
}

absl::Status Daemon::OpenWorkers(const DaemonOptions& options) {
  WorkerSupervisor::Options worker_options;
  worker_options.worker_program = std::filesystem::absolute(options.worker_program).string();
  worker_options.state_folder = state_folder_->path();
  worker_options.sandbox = SandboxFor(options);
  for (const HostGpu& gpu : gpus_->gpus()) worker_options.gpu_uuids.push_back(gpu.status.uuid());
  worker_options.cancel_grace = options.cancel_grace;
  worker_options.silence_limit = options.worker_silence_limit;
  worker_options.collective_time_limit = options.collective_time_limit;
  worker_options.resolve_dataset = [this](const v1::DatasetSpec& spec) { return datasets_->Resolve(spec); };
  worker_options.find_weights = [this](const v1::InitialWeights& weights) { return weights_->Find(weights); };
  ModelWorkers::Options model_options;
  model_options.worker_program = worker_options.worker_program;
  model_options.most_running = options.model_workers;
  model_options.time_limit = options.model_time_limit;
  model_options.idle_time = options.model_idle_time;
  model_options.algorithms_folder = state_folder_->path();
  model_options.sandbox = worker_options.sandbox;
  models_ = std::make_unique<ModelWorkers>(std::move(model_options));
  GpuProber::Options checks;
  checks.worker_program = worker_options.worker_program;
  checks.gpu_uuids = worker_options.gpu_uuids;
  checks.sandbox = worker_options.sandbox;
  if (!shared_folder_.empty()) TANDEM_RETURN_IF_ERROR(OpenCluster(options, worker_options));
  TANDEM_ASSIGN_OR_RETURN(workers_, WorkerSupervisor::Create(std::move(worker_options), jobs_.get()));
  starter_ =
      std::make_unique<StarterChoice>(workers_.get(), cluster_ == nullptr ? nullptr : cluster_->starter(),
                                      jobs_.get(), [this](const std::string& id, int32_t attempt) {
                                        scheduler_->ReleaseLease(id, attempt, /*crashed=*/false);
                                      });
  Scheduler::Options scheduler_options;
  scheduler_options.fair_share_half_life = options.fair_share_half_life;
  scheduler_options.ageing_interval = options.ageing_interval;
  scheduler_options.quota = Quotas(options);
  if (cluster_ != nullptr) {
    scheduler_options.cluster_waiting = [this](const std::string& id) { return cluster_->WaitingOf(id); };
  }
  scheduler_ = std::make_unique<Scheduler>(jobs_.get(), store_.get(), inventory_.get(), &policy_,
                                           starter_.get(), Clock::Real(), std::move(scheduler_options));
  gpu_health_ = WatchGpus(std::move(checks));
  return absl::OkStatus();
}

void Daemon::ObserveJobs(const DaemonOptions& options) {
  drain_ = std::make_unique<JobDrain>(jobs_.get());
  jobs_->AddObserver(monitoring_.jobs());
  jobs_->AddObserver(workers_.get());
  if (cluster_ != nullptr) jobs_->AddObserver(cluster_->observer());
  jobs_->AddObserver(scheduler_.get());
  jobs_->AddObserver(drain_.get());
  pruner_ = std::make_unique<SweepPruner>(jobs_.get());
  jobs_->AddObserver(pruner_.get());
  disk_ = std::make_unique<JobDiskUse>(state_folder_->JobsFolder());
  jobs_->AddObserver(disk_.get());
  if (options.keep_ended_jobs > absl::ZeroDuration()) {
    retention_ = KeepJobsFor(options.keep_ended_jobs);
    jobs_->AddObserver(retention_.get());
  }
  jobs_->SetWaitingSource(scheduler_.get());
  jobs_->SetMostQueued(options.max_queued_jobs);
}

absl::Status Daemon::TakeOverJobs() {
  if (restoration_.has_value()) {
    const absl::Status told =
        TellOfRestoration(state_folder_->DatabasePath(), *restoration_, state_folder_->JobsFolder(),
                          uploads_->FromBeforeRestoration(), store_.get(), jobs_.get());
    if (!told.ok()) {
      spdlog::warn("cannot report the restoration, so the next daemon reports it again: {}", told.ToString());
    }
  }
  TANDEM_RETURN_IF_ERROR(scheduler_->RestoreRecords());
  std::vector<v1::Job> left;
  TANDEM_RETURN_IF_ERROR(jobs_->VisitNonTerminalJobs(
      [&left](v1::Job job) { left.push_back(Scheduler::Trimmed(std::move(job))); }));
  TANDEM_ASSIGN_OR_RETURN(const auto counts, store_->CountJobs());
  monitoring_.jobs()->Restore(counts, left);
  // A paused job has no worker and no devices, unless its old worker lingers.
  left.erase(
      std::remove_if(left.begin(), left.end(), [](const v1::Job& job) { return IsAtRest(job.state()); }),
      left.end());
  if (cluster_ == nullptr) TANDEM_RETURN_IF_ERROR(CheckNoneOnCluster(left));
  for (v1::Job& job : workers_->FindLingering()) left.push_back(std::move(job));
  for (v1::Job& job : left) RenameLeasedGpus(inventory_->Devices(), &job);
  if (absl::Status status = scheduler_->Restore(left); !status.ok()) {
    spdlog::warn("cannot restore the leases of some running jobs: {}", std::string(status.message()));
  }
  TANDEM_RETURN_IF_ERROR(workers_->Begin(left, [this](const std::string& id, int32_t attempt, bool crashed) {
    if (crashed) return gpu_health_->OnCrash(id, attempt);
    scheduler_->ReleaseLease(id, attempt, /*crashed=*/false);
  }));
  if (cluster_ != nullptr) {
    TANDEM_RETURN_IF_ERROR(cluster_->Begin(left, [this](const std::string& id, int32_t attempt) {
      scheduler_->ReleaseLease(id, attempt, /*crashed=*/false);
    }));
  }
  if (!left.empty()) spdlog::info("took over jobs={}", left.size());
  disk_->Start([this] { return OwnedFolders(); });
  scheduler_->Start();
  gpus_->WatchErrors([this](const GpuMonitor::Error& error) { gpu_health_->OnDriverError(error); });
  return absl::OkStatus();
}

absl::Status Daemon::OpenCluster(const DaemonOptions& options, const WorkerSupervisor::Options& workers) {
  ClusterJobs::Options cluster;
  cluster.jobs_folder = shared_folder_ + "/jobs";
  cluster.cancel_grace = options.cancel_grace;
  cluster.launch.worker_program = workers.worker_program;
  cluster.launch.state_folder = state_folder_->path();
  cluster.launch.algorithms_folder = shared_folder_;
  cluster.launch.sandbox = workers.sandbox;
  cluster.launch.sandbox.readable = options.data_folders;
  for (const char* name : {"public", "cache", "uploads"}) {
    cluster.launch.sandbox.readable.push_back(absl::StrCat(shared_folder_, "/", name));
  }
  cluster.launch.launch.resolve_dataset = workers.resolve_dataset;
  cluster.launch.launch.find_weights = workers.find_weights;
  cluster.launch.launch.silence_limit = options.worker_silence_limit;
  cluster.launch.launch.collective_time_limit = options.collective_time_limit;
  TANDEM_ASSIGN_OR_RETURN(
      cluster_, ClusterPart::Open(std::move(cluster), options.worker_listen, options.ssh_hosts, jobs_.get()));
  return absl::OkStatus();
}

std::unique_ptr<GpuHealth> Daemon::WatchGpus(GpuProber::Options checks) {
  GpuHealth::Parts parts;
  parts.devices = [this] { return inventory_->Devices(); };
  parts.ask_driver = [this](v1::GpuStatus* status, absl::Duration limit) {
    return gpus_->Refresh(status, limit);
  };
  parts.exclude = [this](const std::string& device, const std::string& message) {
    scheduler_->SetDeviceState(device, v1::DEVICE_STATE_EXCLUDED, message,
                               [device](const absl::StatusOr<v1::Device>& excluded) {
                                 if (!excluded.ok())
                                   spdlog::warn("cannot record that device={} is excluded: {}", device,
                                                excluded.status().ToString());
                               });
  };
  parts.release_lease = [this](const std::string& job_id, int32_t attempt) {
    scheduler_->ReleaseLease(job_id, attempt, /*crashed=*/true);
  };
  parts.tell = [this](const std::string& job_id, const std::string& text) {
    jobs_->AddNotice(job_id, text, [job_id](const absl::StatusOr<v1::Job>& told) {
      // The job may just have ended.
      if (!told.ok()) spdlog::info("cannot add a notice to job={}: {}", job_id, told.status().ToString());
    });
  };
  return std::make_unique<GpuHealth>(std::move(checks), std::move(parts));
}

std::function<UserQuota(const std::string&)> Daemon::Quotas(const DaemonOptions& options) const {
  UserQuota usual;
  usual.max_devices = options.user_max_devices;
  usual.max_queued_jobs = options.user_max_queued_jobs;
  usual.max_streams = options.user_max_streams;
  usual.calls_per_second = options.user_max_call_rate;
  usual.max_disk_bytes = options.user_max_disk;
  return [this, usual](const std::string& user) {
    if (user == kAdminUser) return UserQuota();
    UserQuota quota = usual;
    if (const std::optional<v1::Token> token = tokens_->Find(user); token.has_value()) {
      if (token->has_max_devices()) quota.max_devices = token->max_devices();
      if (token->has_max_queued_jobs()) quota.max_queued_jobs = token->max_queued_jobs();
      if (token->has_max_streams()) quota.max_streams = token->max_streams();
      if (token->has_max_disk_bytes()) quota.max_disk_bytes = token->max_disk_bytes();
    }
    return quota;
  };
}

absl::Status Daemon::Serve(const DaemonOptions& options, const ListenAddress& address,
                           std::shared_ptr<grpc::ServerCredentials> credentials) {
  TANDEM_ASSIGN_OR_RETURN(files_, FileWatcher::Create());
  pool_ = std::make_unique<FairPool>(kPoolThreads, kPoolThreadsEach);
  user_pool_ = std::make_unique<FairPool>(kUserPoolThreads, kUserPoolThreadsEach);

  RpcServer::Parts parts;
  parts.lifecycle = lifecycle_;
  parts.jobs = jobs_.get();
  parts.events = events_.get();
  parts.scheduler = scheduler_.get();
  parts.admission = admission_.get();
  parts.datasets = datasets_.get();
  parts.remote = fetcher_.get();
  parts.registry = registry_.get();
  parts.uploads = uploads_.get();
  parts.backups = backups_.get();
  parts.drain = drain_.get();
  parts.pool = pool_.get();
  parts.user_pool = user_pool_.get();
  parts.files = files_.get();
  parts.models = models_.get();
  parts.authenticator = authenticator_.get();
  parts.tokens = tokens_.get();
  parts.quota = Quotas(options);
  parts.disk_use = [this](const std::string& user) { return disk_->BytesOf(user); };
  parts.is_removing = [this](const std::string& user) { return disk_->IsRemoving(user); };
  parts.limits = limits_.get();
  parts.hooks = WithAudit(monitoring_.call_hooks(), audit_.get());
  if (!gpus_->gpus().empty()) {
    parts.refresh_gpu = [this](v1::GpuStatus* status) {
      // A device that does not answer shows no status.
      gpus_->Refresh(status).IgnoreError();
    };
  }
  if (cluster_ != nullptr) parts.partitions = [this] { return cluster_->Partitions(); };
  parts.daemon.set_version(kVersion);
  parts.daemon.mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  parts.daemon.set_state_folder(state_folder_->path());
  for (const std::string& folder : options.data_folders) parts.daemon.add_data_folders(folder);
  TANDEM_ASSIGN_OR_RETURN(server_, RpcServer::Start(address, std::move(credentials), std::move(parts),
                                                    {.max_connections = options.max_connections,
                                                     .memory_bytes = AvailableMemory()}));
  return absl::OkStatus();
}

absl::Status Daemon::Monitor(const ListenAddress* address) {
  Monitoring::Parts parts;
  parts.store = store_.get();
  parts.scheduler = scheduler_.get();
  parts.service_manager = service_manager_;
  parts.serving = [this] { return lifecycle_->CheckServing(); };
  parts.set_serving = [this](bool serving) { server_->SetServing(serving); };
  parts.devices = [this] { return RefreshedDevices(); };
  parts.cache_bytes = [this] { return static_cast<double>(cache_->used_bytes()); };
  parts.upload_bytes = [this] { return static_cast<double>(uploads_->used_bytes()); };
  parts.backup_age = [this] { return backups_->NewestAge().value_or(absl::InfiniteDuration()); };
  parts.state_folder = state_folder_->path();
  parts.is_saving = [this] { return is_saving(); };
  parts.audit = audit_.get();
  parts.tls = tls_.get();
  parts.cuda_major = TANDEM_CUDA_MAJOR;
  return monitoring_.Start(std::move(parts), address);
}

std::vector<v1::Device> Daemon::RefreshedDevices() {
  std::vector<v1::Device> devices = scheduler_->ListDevices();
  for (v1::Device& device : devices) {
    // A device that does not answer shows no status.
    if (device.has_gpu()) gpus_->Refresh(device.mutable_gpu()).IgnoreError();
  }
  return devices;
}

Daemon::~Daemon() { Stop(); }

void Daemon::Stop() {
  if (std::exchange(stopped_, true)) return;
  if (state_folder_ != nullptr) state_folder_->AnnounceStop();
  // If the database's file was removed, save its content now: the stop may not get as far as the store.
  if (store_ != nullptr) store_->Probe([](const absl::Status&) {});
  const bool drained = drain_ != nullptr && drain_->is_drained();
  if (server_ != nullptr && drained) server_->AwaitStreams(kWatcherGrace);
  lifecycle_->Stop();
  if (drain_ != nullptr) drain_->Abort(lifecycle_->CheckServing());
  if (backups_ != nullptr) backups_->Stop();
  // End the calls that wait for data.
  if (fetcher_ != nullptr) fetcher_->Stop();
  if (dataset_workers_ != nullptr) dataset_workers_->Stop();
  // Drop the waiting tasks, and so answer their calls. Running tasks continue.
  for (FairPool* const pool : {user_pool_.get(), pool_.get()}) {
    if (pool != nullptr) pool->Drop();
  }
  if (server_ != nullptr) {
    unlink(AddressFile().c_str());
    server_->Stop(kCallGrace);
    Audit("stop");
  }
  if (models_ != nullptr) models_->Stop();
  if (gpus_ != nullptr) gpus_->Stop();
  if (scheduler_ != nullptr) scheduler_->Stop();
  // Stopped workers send their last events soon after their jobs end.
  if (workers_ != nullptr && drained) workers_->WaitUntilIdle(kWorkerGrace);
  if (cluster_ != nullptr && drained) cluster_->WaitUntilIdle(kWorkerGrace);
  if (workers_ != nullptr) workers_->Stop();
  if (cluster_ != nullptr) cluster_->Stop();
  if (gpu_health_ != nullptr) gpu_health_->Stop();
  if (user_pool_ != nullptr) user_pool_->Stop();
  if (pool_ != nullptr) pool_->Stop();
  if (backup_schedule_ != nullptr) backup_schedule_->Stop();
  if (pruner_ != nullptr) pruner_->Stop();
  if (retention_ != nullptr) retention_->Stop();
  if (disk_ != nullptr) disk_->Stop();
  if (events_ != nullptr) events_->Close(lifecycle_->CheckServing());
  // Until here, monitoring reports that the daemon is not ready.
  monitoring_.Stop();
  // Observers of jobs are destroyed after the store's writer.
  if (store_ != nullptr) store_->Close();
  if (audit_ != nullptr) audit_->Close();
}

}  // namespace tandem
