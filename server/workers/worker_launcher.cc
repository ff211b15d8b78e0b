#include "server/workers/worker_launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "server/jobs/uploaded_weights.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"
#include "server/workers/launch_file.h"
#include "server/workers/worker_record.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

constexpr char kCollectiveTimeLimit[] = "TANDEM_COLLECTIVE_TIME_LIMIT";

absl::Status MakeFolder(const std::string& path) {
  absl::Status made = EnsureOwnerFolder(path);
  if (!absl::IsNotFound(made)) return made;
  // Somebody removed the parent of all jobs' folders.
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(ParentFolder(path)));
  return EnsureOwnerFolder(path);
}

// UNAVAILABLE: a worker of an earlier attempt held the lock and was killed.
absl::StatusOr<WorkerLock> TakeLock(const std::string& path) {
  absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(path);
  if (!absl::IsFailedPrecondition(lock.status())) return lock;
  if (absl::StatusOr<std::unique_ptr<ProcessGroup>> other = FindWorkerByLock(path); other.ok()) {
    (*other)->SignalGroup(SIGKILL);
    pollfd ended = {(*other)->pidfd(), POLLIN, 0};
    if (poll(&ended, 1, 0) == 1) (*other)->Reap();
  }
  return absl::UnavailableError(lock.status().message());
}

}  // namespace

std::vector<std::string> WorkerEnvironment(const std::vector<v1::Device>& devices,
                                           const std::string& algorithms_folder,
                                           const std::vector<std::string>& gpu_uuids) {
  static constexpr absl::string_view kVisibleGpus = "CUDA_VISIBLE_DEVICES=";
  static constexpr absl::string_view kKept[] = {
      "PATH=", "HOME=", "USER=", "LANG=", "TZ=", "TMPDIR=", "LD_LIBRARY_PATH="};
  static constexpr absl::string_view kKeptPrefixes[] = {"CUDA_", "NVIDIA_", "NCCL_", "DNNL_",  "ONEDNN_",
                                                        "ASAN_", "LSAN_",   "TSAN_", "UBSAN_", "TANDEM_"};
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    const auto begins_variable = [&](absl::string_view start) { return absl::StartsWith(variable, start); };
    if (begins_variable(kVisibleGpus)) continue;
    // An empty variable counts as unset, so the launch's value applies (CollectiveEnvironment).
    if (variable == absl::StrCat(kCollectiveTimeLimit, "=")) continue;
    if (std::any_of(std::begin(kKept), std::end(kKept), begins_variable) ||
        std::any_of(std::begin(kKeptPrefixes), std::end(kKeptPrefixes), begins_variable)) {
      environment.emplace_back(variable);
    }
  }
  int threads = 1;
  bool has_gpu = false;
  for (const v1::Device& device : devices) {
    threads = std::max(threads, device.threads());
    has_gpu = has_gpu || device.kind() == v1::DEVICE_KIND_GPU;
  }
  environment.push_back(absl::StrCat(kVisibleGpus, has_gpu ? absl::StrJoin(gpu_uuids, ",") : ""));
  environment.push_back(absl::StrCat("OMP_NUM_THREADS=", threads));
  // Threads that spin while they wait cost small networks more than half their speed on shared cores.
  environment.push_back("OMP_WAIT_POLICY=passive");
  environment.push_back("OMP_DYNAMIC=false");
  for (const auto& [variable, file] :
       {std::pair("TANDEM_CPU_ALGORITHMS", "cpu-algorithms"), std::pair("TANDEM_CUDA_PLANS", "cuda-plans")}) {
    if (algorithms_folder.empty() || std::getenv(variable) != nullptr) continue;
    environment.push_back(absl::StrCat(variable, "=", algorithms_folder, "/", file));
  }
  return environment;
}

std::vector<std::string> CollectiveEnvironment(const internal::v1::WorkerLaunch& launch) {
  const int workers = std::max(1, launch.group().workers());
  const int ranks = launch.devices_size() / workers;
  std::map<std::string, std::set<int>> workers_of;  // By the GPU's name.
  for (int rank = 0; rank < launch.devices_size(); ++rank) {
    const v1::Device& device = launch.devices(rank);
    if (device.kind() == v1::DEVICE_KIND_GPU) workers_of[device.name()].insert(rank / ranks);
  }
  if (workers_of.empty() || (workers == 1 && workers_of.size() == 1)) return {};
  std::vector<std::string> environment;
  const char* const time_limit = std::getenv(kCollectiveTimeLimit);
  if (launch.watchdog_seconds() > 0 && (time_limit == nullptr || *time_limit == '\0')) {
    const absl::Duration limit = absl::Seconds(launch.watchdog_seconds());
    environment.push_back(absl::StrCat(kCollectiveTimeLimit, "=", absl::FormatDuration(limit)));
  }
  if (std::getenv("TANDEM_NCCL") == nullptr &&
      std::any_of(workers_of.begin(), workers_of.end(),
                  [](const auto& gpu) { return gpu.second.size() > 1; })) {
    environment.push_back("TANDEM_NCCL=0");
  }
  return environment;
}

absl::StatusOr<ModelFile> WorkerLauncher::InitialWeightsOf(const v1::Job& job) const {
  const v1::InitialWeights& weights = job.spec().initial_weights();
  if (UploadedWeights(weights).has_value()) {
    // Kept since before the job's creation. The upload may be gone.
    std::optional<std::string> kept = FindKeptWeights(job.folder());
    if (kept.has_value()) return ModelFile{*std::move(kept), ""};
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start ", job.name(), ": the uploaded file of its initial_weights is missing at ",
                     KeptWeightsPath(job.folder()), "; submit a new job with the file"));
  }
  if (!weights.has_artifact()) return options_.find_weights(weights);
  absl::StatusOr<ModelFile> file = options_.find_weights(weights);
  if (std::optional<std::string> kept = FindKeptWeights(job.folder()); kept.has_value()) {
    // The record describes the other job's current file. A later model may have replaced the kept file.
    std::error_code error;
    const bool same = file.ok() && std::filesystem::equivalent(*kept, file->path, error);
    return ModelFile{*std::move(kept), same ? file->sha256 : ""};
  }
  if (!file.ok()) return file.status();
  const absl::Status kept = KeepWeights(file->path, job.folder(), options_.link);
  if (kept.ok()) return ModelFile{KeptWeightsPath(job.folder()), file->sha256};
  if (!absl::IsUnimplemented(kept)) return kept;
  const std::string message =
      absl::StrCat("The model of ", weights.artifact().job(),
                   " could not be copied, so the job reads the original: ", kept.message(),
                   ". If that job is deleted, this job cannot start from the beginning.");
  spdlog::warn("{} attempt={}: {}", job.name(), job.attempt(), message);
  // Tell the job once, because every attempt has the same.
  if (options_.tell != nullptr && job.attempt() <= 1) options_.tell(job, message);
  return file;
}

absl::StatusOr<internal::v1::WorkerLaunch> WorkerLauncher::MakeLaunch(const v1::Job& job,
                                                                      const std::vector<v1::Device>& devices,
                                                                      const std::string& secret) const {
  internal::v1::WorkerLaunch launch;
  launch.set_job_id(JobId(job.name()));
  launch.set_attempt(job.attempt());
  *launch.mutable_spec() = job.spec();
  for (const v1::Device& device : devices) *launch.add_devices() = device;
  TANDEM_ASSIGN_OR_RETURN(*launch.mutable_dataset(), options_.resolve_dataset(job.spec().dataset()));
  if (job.spec().has_initial_weights()) {
    // A checkpoint replaces the weights. The folder decides, as for the worker: a restored database may lack
    // checkpoints, or have checkpoints that are gone.
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints,
                            ListCheckpointFiles(Env::Real(), job.folder()));
    if (checkpoints.empty()) {
      TANDEM_ASSIGN_OR_RETURN(const ModelFile file, InitialWeightsOf(job));
      launch.set_initial_weights_path(file.path);
      launch.set_initial_weights_sha256(file.sha256);
    }
  }
  launch.set_daemon_target(options_.daemon_target);
  launch.set_job_folder(job.folder());
  launch.set_secret(secret);
  launch.set_watchdog_seconds(absl::ToDoubleSeconds(options_.collective_time_limit));
  const int workers = std::max(1, job.spec().replicas().workers());
  if (workers == 1) return launch;
  const std::string rendezvous = JobFolder(job.folder()).RendezvousFolder(job.attempt());
  TANDEM_RETURN_IF_ERROR(MakeFolder(rendezvous));
  launch.mutable_group()->set_workers(workers);
  launch.mutable_group()->set_folder(rendezvous);
  launch.mutable_group()->set_silence_seconds(absl::ToDoubleSeconds(options_.silence_limit));
  return launch;
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> WorkerLauncher::LaunchOne(
    const internal::v1::WorkerLaunch& launch, WorkerLock& lock) const {
  const JobFolder folder(launch.job_folder());
  const int worker = launch.group().worker();
  TANDEM_ASSIGN_OR_RETURN(const std::string launch_path, WriteLaunchFile(folder, launch));

  const int workers = std::max(1, launch.group().workers());
  const int ranks = launch.devices_size() / workers;
  ProcessGroup::Command command;
  command.program = options_.worker_program;
  command.arguments = {"--launch", launch_path, "--lock-fd", absl::StrCat(WorkerLock::kInheritedFd)};
  AddSandboxArguments(options_.sandbox, &command.arguments);
  command.environment = WorkerEnvironment(
      {launch.devices().begin() + worker * ranks, launch.devices().begin() + (worker + 1) * ranks},
      options_.algorithms_folder, options_.gpu_uuids);
  for (std::string& variable : CollectiveEnvironment(launch)) {
    command.environment.push_back(std::move(variable));
  }
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<ProcessGroup> process,
                          StartWorker(command, folder.LogPath(worker), lock));
  // The worker writes the same; this helps a daemon that takes over before. Ignore errors, because the worker
  // already runs.
  lock.SetHolder({.attempt = launch.attempt(), .pid = process->pid()}).IgnoreError();
  return process;
}

absl::StatusOr<std::vector<std::unique_ptr<ProcessGroup>>> WorkerLauncher::Launch(
    const v1::Job& job, const std::vector<v1::Device>& devices, const std::string& secret) const {
  const JobFolder folder(job.folder());
  TANDEM_RETURN_IF_ERROR(MakeFolder(folder.path()));
  const int workers = std::max(1, job.spec().replicas().workers());
  // Also take the locks of an earlier attempt, which may have had more workers.
  std::vector<WorkerLock> locks;
  for (int worker = 0; worker < std::max(workers, CountLocks(folder)); ++worker) {
    TANDEM_ASSIGN_OR_RETURN(WorkerLock lock, TakeLock(folder.LockPath(worker)));
    TANDEM_RETURN_IF_ERROR(lock.SetHolder({.attempt = job.attempt()}));
    if (worker < workers) locks.push_back(std::move(lock));
  }
  TANDEM_RETURN_IF_ERROR(MakeFolder(folder.AttemptFolder(job.attempt())));
  // Sync the folders: files in them would be lost with their names.
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(folder.path()));
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(std::filesystem::path(folder.path()).parent_path()));
  TANDEM_ASSIGN_OR_RETURN(internal::v1::WorkerLaunch launch, MakeLaunch(job, devices, secret));

  // Replace an earlier attempt's record before any process runs that it does not name.
  WorkerRecord record = {.attempt = job.attempt(), .workers = workers};
  TANDEM_RETURN_IF_ERROR(WriteWorkerRecord(folder.path(), record));
  std::vector<std::unique_ptr<ProcessGroup>> processes;
  for (int worker = 0; worker < workers; ++worker) {
    if (workers > 1) launch.mutable_group()->set_worker(worker);
    absl::StatusOr<std::unique_ptr<ProcessGroup>> process = LaunchOne(launch, locks[worker]);
    if (!process.ok()) {
      for (const std::unique_ptr<ProcessGroup>& started : processes) started->Kill();
      return process.status();
    }
    const pid_t pid = (*process)->pid();
    processes.push_back(*std::move(process));
    const uint64_t start = StartOfProcess(pid);
    // The process runs now. The next daemon finds an unrecorded process by its lock.
    if (start == 0 || static_cast<int>(record.processes.size()) != worker) continue;
    record.processes.push_back({.pid = pid, .start = start});
    if (const absl::Status written = WriteWorkerRecord(folder.path(), record); !written.ok()) {
      spdlog::warn("{} attempt={}: {}", job.name(), job.attempt(), written.ToString());
    }
  }
  return processes;
}

}  // namespace tandem
