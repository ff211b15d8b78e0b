#include "server/workers/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"
#include "server/store/pending_result.h"
#include "server/store/records.h"
#include "server/workers/exit_codes.h"
#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"
#include "server/workers/kept_weights.h"
#include "server/workers/launch_file.h"
#include "server/workers/owner_mode.h"
#include "server/workers/settlement.h"
#include "server/workers/socket_path.h"
#include "server/workers/supervised_worker.h"
#include "server/workers/worker_protocol.h"
#include "server/workers/worker_record.h"
#include "server/workers/worker_secret.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using Worker = SupervisedWorker;

constexpr absl::Duration kRetryInterval = absl::Seconds(1);
// The time between looks at a lock whose holder has not written its pid yet.
constexpr absl::Duration kResolveInterval = absl::Milliseconds(20);
// After this many looks, kRetryInterval applies.
constexpr int kQuickLooks = 50;

// The time that a killed worker of an earlier attempt has to exit.
constexpr absl::Duration kEvictionTime = absl::Seconds(5);

// The time that the rest of a group has after a worker's end, to report it and to exit.
constexpr absl::Duration kGroupGrace = absl::Seconds(5);

// Returns Clock::Elapsed() as an absl::Time, which does not jump.
absl::Time MonotonicNow() { return absl::UnixEpoch() + Clock::Real()->Elapsed(); }

// Returns a job that the database does not have, as far as its worker's lease needs it. The devices and their
// share are in the launch file. Nothing else is taken from the file, because the worker may have changed it.
v1::Job JobOfLaunch(const std::string& id, int attempt, const std::string& folder) {
  v1::Job job;
  job.set_name(JobName(id));
  job.set_attempt(attempt);
  job.set_folder(folder);
  const absl::StatusOr<internal::v1::WorkerLaunch> launch = ReadLaunchFile(JobFolder(folder), attempt);
  if (!launch.ok()) {
    spdlog::error("cannot keep the devices of a worker leased until its end job={} attempt={}: {}", id,
                  attempt, std::string(launch.status().message()));
    return job;
  }
  for (const v1::Device& device : launch->devices()) job.add_devices(device.name());
  const double share = launch->spec().device_share();
  if (share > 0 && share < 1) job.mutable_spec()->set_device_share(share);
  return job;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerSupervisor>> WorkerSupervisor::Create(Options options,
                                                                           JobMachine* jobs) {
  TANDEM_ASSIGN_OR_RETURN(std::string socket_path, PrepareSocketPath(options.state_folder));
  UniqueFd wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd.valid()) return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  return std::unique_ptr<WorkerSupervisor>(
      new WorkerSupervisor(std::move(options), std::move(socket_path), jobs, std::move(wake_fd)));
}

WorkerSupervisor::WorkerSupervisor(Options options, std::string socket_path, JobMachine* jobs,
                                   UniqueFd wake_fd)
    : options_(std::move(options)),
      socket_path_(std::move(socket_path)),
      launcher_(
          {.worker_program = options_.worker_program,
           .daemon_target = UnixTarget(socket_path_),
           .resolve_dataset = options_.resolve_dataset,
           .find_weights = options_.find_weights,
           .silence_limit = options_.silence_limit,
           .collective_time_limit = options_.collective_time_limit,
           .algorithms_folder = options_.state_folder,
           .gpu_uuids = options_.gpu_uuids,
           .sandbox = options_.sandbox,
           .tell = [jobs](const v1::Job& job,
                          const std::string& message) { jobs->AddNotice(JobId(job.name()), message); }}),
      jobs_(jobs),
      wake_fd_(std::move(wake_fd)),
      folders_(options_.state_folder + "/jobs") {}

WorkerSupervisor::~WorkerSupervisor() { Stop(); }

absl::Status WorkerSupervisor::Begin(const std::vector<v1::Job>& jobs, ReleaseLease release_lease) {
  release_lease_ = std::move(release_lease);
  for (const v1::Job& job : jobs) {
    if (job.state() != v1::JOB_STATE_QUEUED && !job.spec().has_cluster()) Adopt(job);
  }
  RemoveStaleRecords(options_.state_folder + "/jobs", [this](const std::string& job_id) {
    MutexLock lock(&mutex_);
    return workers_.contains(job_id);
  });
  TANDEM_RETURN_IF_ERROR(Listen());
  folders_.Start(jobs_, folders_.ListFolders());
  monitor_ = std::thread([this] {
    folders_.AddKeptOrphans(jobs_);
    Monitor();
  });
  return absl::OkStatus();
}

absl::Status WorkerSupervisor::Listen() {
  WorkerSessionHost* const host = this;
  service_ = std::make_unique<WorkerStreams>(host, jobs_);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(UnixTarget(socket_path_), grpc::InsecureServerCredentials());
  service_->AddTo(&builder, options_.silence_limit);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on the Unix socket ", socket_path_, " for workers"));
  }
  chmod(socket_path_.c_str(), 0600);
  return absl::OkStatus();
}

void WorkerSupervisor::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  if (monitor_.joinable()) monitor_.join();
  folders_.Stop();
  MutexLock lock(&mutex_);
  // If no worker needs the folder any more, leave nothing in /tmp. gRPC already removed the socket.
  if (workers_.empty()) rmdir(std::filesystem::path(socket_path_).parent_path().c_str());
}

bool WorkerSupervisor::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

bool WorkerSupervisor::WaitUntilIdle(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(
                                     +[](Workers* workers) { return workers->empty(); }, &workers_),
                                 timeout);
}

void WorkerSupervisor::Wake() {
  const uint64_t one = 1;
  // Writing fails only if the monitor already has many pending calls.
  [[maybe_unused]] const ssize_t count = write(wake_fd_.get(), &one, sizeof(one));
}

void WorkerSupervisor::Start(const v1::Job& job, const std::vector<v1::Device>& devices) {
  const auto worker = std::make_shared<Worker>(job, devices, MonotonicNow() + kEvictionTime);
  {
    MutexLock lock(&mutex_);
    workers_[worker->job_id()] = worker;
  }
  Wake();
}

void WorkerSupervisor::Launch(const std::shared_ptr<Worker>& worker) {
  absl::StatusOr<Worker::Processes> processes = absl::UnknownError("");
  absl::StatusOr<std::string> secret = MakeWorkerSecret();
  if (secret.ok()) {
    {
      // The worker may connect before Launch returns.
      MutexLock lock(&mutex_);
      worker->SetSecret(*secret);
    }
    processes = launcher_.Launch(worker->job(), worker->devices(), *secret);
  } else {
    processes = secret.status();
  }
  const bool is_waiting = absl::IsUnavailable(processes.status()) && MonotonicNow() < worker->launch_until();
  if (!is_waiting) worker->ForgetLaunch();
  MutexLock lock(&mutex_);
  if (processes.ok()) {
    for (const std::unique_ptr<ProcessGroup>& process : *processes) {
      spdlog::info("worker started job={} attempt={} pid={}", worker->job_id(), worker->attempt(),
                   process->pid());
    }
    worker->Run(*std::move(processes), MonotonicNow() + options_.connect_grace);
  } else if (is_waiting) {
    worker->AttendAt(MonotonicNow() + kResolveInterval);
  } else {
    spdlog::error("cannot start a worker job={} attempt={}: {}", worker->job_id(), worker->attempt(),
                  processes.status().ToString(absl::StatusToStringMode::kWithNoExtraData));
    worker->FailStart(processes.status().message());
  }
}

std::vector<v1::Job> WorkerSupervisor::FindLingering() {
  const std::string jobs_folder = options_.state_folder + "/jobs";
  std::vector<v1::Job> lingering;
  std::error_code error;
  std::filesystem::directory_iterator entry(jobs_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string id = entry->path().filename().string();
    const absl::StatusOr<RunningWorkers> running = FindRunningWorkers(JobFolder(entry->path().string()));
    if (!running.ok() || running->pids.empty()) continue;
    absl::StatusOr<v1::Job> job = jobs_->Get(id);
    const bool was_preempted = job.ok() && job->state() == v1::JOB_STATE_QUEUED;
    if (job.ok() && (IsAtRest(job->state()) || was_preempted) && job->attempt() == running->attempt) {
      lingering.push_back(*std::move(job));
      // Its worker must end.
      if (was_preempted) lingering.back().set_state(v1::JOB_STATE_PAUSED);
    } else if (absl::IsNotFound(job.status())) {
      spdlog::warn(
          "ending a worker of a deleted job, or of a job made after the restored backup job={} attempt={}",
          id, running->attempt);
      lingering.push_back(JobOfLaunch(id, running->attempt, entry->path().string()));
    }
  }
  if (error) {
    spdlog::warn("cannot look for workers whose jobs have ended in {}: {}", jobs_folder, error.message());
  }
  return lingering;
}

void WorkerSupervisor::Adopt(const v1::Job& job) {
  const auto worker = std::make_shared<Worker>(job);
  const absl::StatusOr<RunningWorkers> running = FindRunningWorkers(worker->folder());
  // If the system cannot tell, the monitor keeps trying. Meanwhile nobody else may get the devices.
  if (!running.ok() || (!running->pids.empty() && running->attempt == worker->attempt())) {
    spdlog::info("worker adopted job={} attempt={}", worker->job_id(), worker->attempt());
    worker->ExpectProcesses();
  } else if (job.state() == v1::JOB_STATE_STARTING &&
             !std::filesystem::exists(worker->folder().SpoolPath(worker->attempt()))) {
    // A worker holds its lock from before its start, so no worker exists or will exist.
    release_lease_(worker->job_id(), worker->attempt(), /*crashed=*/false);
    const PendingResult<v1::Job> requeued;
    jobs_->Requeue(worker->job_id(), worker->attempt(), requeued.Callback());
    const absl::Status status = requeued.Wait().status();
    if (status.ok()) return;
    spdlog::error("cannot queue a job again job={}: {}", worker->job_id(), status.ToString());
  }
  // A folder without a deleted job stays: its job may be in a newer database.
  const absl::StatusOr<bool> was_deleted = jobs_->WasDeleted(worker->job_id());
  if (was_deleted.ok() && *was_deleted) worker->RemoveFolderAtEnd();
  MutexLock lock(&mutex_);
  workers_[worker->job_id()] = worker;
  Follow(job.state(), *worker);
}

absl::Status WorkerSupervisor::Admit(const internal::v1::Hello& hello,
                                     const std::shared_ptr<WorkerSession>& session) {
  std::shared_ptr<WorkerSession> former;
  {
    MutexLock lock(&mutex_);
    const auto found = workers_.find(hello.job_id());
    if (stopping_ || found == workers_.end() || found->second->attempt() != hello.attempt() ||
        found->second->phase() == Worker::Phase::kEnded) {
      // This daemon is stopping. The next daemon decides.
      if (stopping_) {
        session->Close();
        return absl::OkStatus();
      }
      // Any process of this account may send this, so escape it: people read the log.
      const std::string job_id = absl::Utf8SafeCHexEscape(hello.job_id().substr(0, 80));
      spdlog::warn("worker dismissed job={} attempt={} pid={}", job_id, hello.attempt(), hello.pid());
      return absl::FailedPreconditionError(absl::StrCat("cannot take this worker: attempt ", hello.attempt(),
                                                        " is not the current attempt of job ", job_id));
    }
    Worker& worker = *found->second;
    if (!worker.HasSecret(hello.secret())) {
      // Dismiss only the caller. The job and its real worker continue.
      spdlog::warn("dismissed a process that pretends to be a worker job={} attempt={} pid={}",
                   worker.job_id(), worker.attempt(), hello.pid());
      return absl::FailedPreconditionError(
          absl::StrCat("cannot take this worker: it does not know the secret of attempt ", hello.attempt(),
                       " of job ", hello.job_id()));
    }
    if (hello.protocol() != kWorkerProtocol) {
      worker.Dismiss(hello.protocol(), MonotonicNow() + options_.exit_grace);
      spdlog::warn("dismissed a worker of another version job={} attempt={} pid={} protocol={}",
                   hello.job_id(), hello.attempt(), hello.pid(), hello.protocol());
      Wake();
      return absl::FailedPreconditionError(DescribeForeignProtocol(hello.protocol()));
    }
    spdlog::info("worker connected job={} attempt={} pid={}", worker.job_id(), worker.attempt(), hello.pid());
    former = worker.Connect(session);
  }
  if (former != nullptr) former->Close();
  return absl::OkStatus();
}

void WorkerSupervisor::Leave(const std::string& job_id, const WorkerSession* session) {
  {
    MutexLock lock(&mutex_);
    const auto found = workers_.find(job_id);
    if (found == workers_.end() || !found->second->Disconnect(session, MonotonicNow())) return;
  }
  Wake();
}

void WorkerSupervisor::Follow(v1::JobState state, Worker& worker) {
  const absl::Time now = MonotonicNow();
  if (state == v1::JOB_STATE_CANCELLING) worker.Cancel(now + options_.cancel_grace);
  if (IsToStopForNow(state)) worker.Pause();
  // The worker of a queued job was preempted or lost another worker, and is about to exit.
  if (state == v1::JOB_STATE_UNSPECIFIED || !IsHolding(state)) worker.TerminateBy(now + options_.exit_grace);
}

void WorkerSupervisor::OnMoved(const v1::Job& job) {
  if (!MayNeedKeptWeights(job)) folders_.AddKeptWeights(job.folder());
  {
    MutexLock lock(&mutex_);
    const auto found = workers_.find(JobId(job.name()));
    if (found != workers_.end() && found->second->attempt() == job.attempt()) {
      Follow(job.state(), *found->second);
    }
  }
  Wake();
}

void WorkerSupervisor::OnDeleted(const v1::Job& job) {
  {
    MutexLock lock(&mutex_);
    const auto found = workers_.find(JobId(job.name()));
    if (found != workers_.end()) {
      found->second->RemoveFolderAtEnd();
    } else {
      folders_.Add(job.folder());
    }
  }
  Wake();
}

void WorkerSupervisor::Monitor() {
  while (!Stopping()) {
    folders_.RemoveKeptWeights();
    const absl::Time next = Attend();

    std::vector<pollfd> fds = {{wake_fd_.get(), POLLIN, 0}};
    std::vector<std::pair<std::shared_ptr<Worker>, int>> watched = {{nullptr, 0}};
    {
      MutexLock lock(&mutex_);
      for (const auto& [job_id, worker] : workers_) {
        if (worker->phase() != Worker::Phase::kRunning) continue;
        for (const std::unique_ptr<ProcessGroup>& process : worker->processes()) {
          if (process == nullptr) continue;
          fds.push_back({process->pidfd(), POLLIN, 0});
          watched.emplace_back(worker, static_cast<int>(&process - worker->processes().data()));
        }
      }
    }
    const absl::Duration wait = std::clamp(next - MonotonicNow(), absl::ZeroDuration(), absl::Hours(1));
    poll(fds.data(), fds.size(),
         static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
    uint64_t calls;
    [[maybe_unused]] const ssize_t count = read(wake_fd_.get(), &calls, sizeof(calls));
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0 && !Stopping()) EndProcess(watched[i].first, watched[i].second);
    }
  }
}

absl::Time WorkerSupervisor::Attend() {
  const absl::Time now = MonotonicNow();
  std::vector<std::shared_ptr<Worker>> unlaunched, unresolved, ended;
  {
    MutexLock lock(&mutex_);
    for (const auto& [job_id, worker] : workers_) {
      if (worker->IsDue(now)) {
        (worker->phase() == Worker::Phase::kLaunching   ? unlaunched
         : worker->phase() == Worker::Phase::kResolving ? unresolved
                                                        : ended)
            .push_back(worker);
      }
      worker->SendDueSignals(now, options_.silence_limit, options_.kill_grace);
    }
  }
  for (const std::shared_ptr<Worker>& worker : unlaunched) {
    // The next daemon queues an unstarted job again.
    if (!Stopping()) Launch(worker);
  }
  for (const std::shared_ptr<Worker>& worker : unresolved) Resolve(worker);
  for (const std::shared_ptr<Worker>& worker : ended) {
    if (!Stopping()) End(worker);
  }
  MutexLock lock(&mutex_);
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [job_id, worker] : workers_) {
    next = std::min(next, worker->NextAction(options_.silence_limit));
  }
  return next;
}

void WorkerSupervisor::Resolve(const std::shared_ptr<Worker>& worker) {
  absl::StatusOr<Worker::Processes> processes =
      FindWorkerProcesses(worker->folder(), worker->attempt(), [this] { return Stopping(); });
  MutexLock lock(&mutex_);
  if (!processes.ok()) {
    // At first the holder is about to write its pid. Later it is not our worker, and looking takes long.
    worker->AttendAt(MonotonicNow() +
                     (worker->CountLook() < kQuickLooks ? kResolveInterval : kRetryInterval));
    return;
  }
  if (std::all_of(processes->begin(), processes->end(),
                  [](const auto& process) { return process == nullptr; })) {
    worker->EndWithoutProcess();
    return;
  }
  // Only the first worker can report the end of training.
  if (processes->front() == nullptr) worker->KillBy(MonotonicNow());
  // A worker that hung while no daemon ran has no connection that could end. Workers can reach this daemon
  // only since it started to listen.
  worker->Run(*std::move(processes), MonotonicNow() + options_.adoption_grace);
}

void WorkerSupervisor::EndProcess(const std::shared_ptr<Worker>& worker, int index) {
  std::unique_ptr<ProcessGroup> process;
  bool killed;
  std::optional<int32_t> foreign_protocol;
  {
    MutexLock lock(&mutex_);
    process = worker->TakeProcess(index);
    killed = worker->killed();
    foreign_protocol = worker->foreign_protocol();
  }
  const ProcessGroup::End end = process->Reap();
  spdlog::info("worker ended job={} attempt={} pid={}: it {}", worker->job_id(), worker->attempt(),
               process->pid(), DescribeEnd(end));
  worker->NoteEnd(index, end, killed, foreign_protocol);
  std::shared_ptr<WorkerSession> session;
  {
    MutexLock lock(&mutex_);
    if (worker->HasProcess()) {
      // A worker that has done its part need not wait for the others. The end of an earlier daemon's worker
      // is unknown: the first worker learns of a loss from the group. Without the first worker nothing more
      // is reported.
      const bool done = end.known && end.exit_code == kWorkerDone;
      if (index == 0 || (end.known && !done)) {
        const absl::Duration grace = !end.known            ? options_.exit_grace
                                     : index == 0 && !done ? absl::ZeroDuration()
                                                           : kGroupGrace;
        worker->KillBy(MonotonicNow() + grace);
      }
      return;
    }
    session = worker->End();
  }
  if (session != nullptr) session->Close();
  End(worker);
}

// Every step can be repeated if the store fails.
void WorkerSupervisor::End(const std::shared_ptr<Worker>& worker) {
  const absl::Status settled =
      SettleWorker(jobs_, worker->job_id(), worker->attempt(), worker->folder().SpoolPath(worker->attempt()),
                   worker->lost_reason(), worker->lost_message(), [this] { return Stopping(); });
  if (!settled.ok()) {
    if (!Stopping()) {
      spdlog::error("cannot record the end of a worker, retrying job={} attempt={}: {}", worker->job_id(),
                    worker->attempt(), settled.ToString());
    }
    // A hijacked worker may have closed these files.
    for (const std::string& path :
         {worker->folder().path(), worker->folder().AttemptFolder(worker->attempt()),
          worker->folder().SpoolPath(worker->attempt())}) {
      RestoreOwnerMode(path);
    }
    MutexLock lock(&mutex_);
    worker->AttendAt(MonotonicNow() + kRetryInterval);
    return;
  }
  unlink(worker->folder().SpoolPath(worker->attempt()).c_str());
  RemoveWorkerRecord(worker->folder().path());
  {
    // Erase the worker before the lease returns, because the next attempt may then start.
    MutexLock lock(&mutex_);
    if (worker->remove_folder()) folders_.Add(worker->folder().path());
    const auto found = workers_.find(worker->job_id());
    if (found != workers_.end() && found->second == worker) workers_.erase(found);
  }
  release_lease_(worker->job_id(), worker->attempt(), worker->crashed());
}

}  // namespace tandem
