#include "server/clusters/cluster_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "engine/training/replica_spec.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/time_util.h"
#include "server/clusters/attempt_files.h"
#include "server/clusters/slurm/batch_script.h"
#include "server/store/records.h"
#include "server/workers/exit_codes.h"
#include "server/workers/pending_result.h"
#include "server/workers/settlement.h"
#include "server/workers/worker_log.h"
#include "server/workers/worker_protocol.h"
#include "server/workers/worker_secret.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using State = LaunchedAttempt::State;

constexpr absl::Duration kRetryInterval = absl::Seconds(2);

// Returns Clock::Elapsed() as an absl::Time, which does not jump.
absl::Time MonotonicNow() { return absl::UnixEpoch() + Clock::Real()->Elapsed(); }

bool IsToStopForNow(v1::JobState state) {
  return state == v1::JOB_STATE_PAUSING || state == v1::JOB_STATE_PREEMPTING;
}

// Calls `visit` with each text in the message.
void VisitTexts(google::protobuf::Message* message, const std::function<void(std::string*)>& visit) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        VisitTexts(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                        : reflection->MutableMessage(message, field),
                   visit);
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        std::string text = field->is_repeated() ? reflection->GetRepeatedString(*message, field, i)
                                                : reflection->GetString(*message, field);
        const std::string before = text;
        visit(&text);
        if (text == before) continue;
        if (field->is_repeated()) {
          reflection->SetRepeatedString(message, field, i, std::move(text));
        } else {
          reflection->SetString(message, field, std::move(text));
        }
      }
    }
  }
}

// Returns the devices of a job's replicas, in the order of ranks. A worker numbers its GPUs itself.
std::vector<v1::Device> DevicesOf(const v1::JobSpec& spec) {
  const v1::Replicas& replicas = spec.replicas();
  const int count = static_cast<int>(LoadsOf(replicas).size());
  const int each = std::max(1, count / std::max(1, replicas.workers()));
  const int threads = std::max(1, spec.cluster().slurm().cpus_per_task() / each);
  const bool gpus = replicas.device_kind() == v1::DEVICE_KIND_GPU;
  std::vector<v1::Device> devices;
  for (int rank = 0; rank < count; ++rank) {
    v1::Device& device = devices.emplace_back();
    device.set_kind(gpus                                                     ? v1::DEVICE_KIND_GPU
                    : replicas.device_kind() == v1::DEVICE_KIND_REFERENCE ? v1::DEVICE_KIND_REFERENCE
                                                                          : v1::DEVICE_KIND_CPU);
    device.set_index(rank);
    device.set_name(absl::StrCat("devices/",
                                 gpus                                                     ? "gpu"
                                 : device.kind() == v1::DEVICE_KIND_REFERENCE ? "reference"
                                                                              : "cpu",
                                 ":", rank));
    if (!gpus) device.set_threads(threads);
  }
  return devices;
}

}  // namespace

// An attempt, from its start to the return of its lease. The lock guards all members but those that never change, and
// `job`, which is for the thread.
struct ClusterJobs::Run {
  enum class Phase {
    kSubmit,   // to be submitted
    kFind,     // may have been submitted
    kWatched,  // submitted
    kEnded,    // no worker runs or will run; to be settled
  };

  Run(const v1::Job& launched, const std::string& jobs_folder, Phase first)
      : job_id(JobId(launched.name())),
        attempt(launched.attempt()),
        folder(absl::StrCat(jobs_folder, "/", job_id)),
        user(launched.user()),
        priority(launched.priority()),
        replicas(static_cast<int>(LoadsOf(launched.spec().replicas()).size())),
        workers(std::max(1, launched.spec().replicas().workers())),
        create_time(launched.create_time()),
        job(launched),
        phase(first) {}

  AttemptId id() const { return {job_id, attempt}; }
  bool is_stopping() const { return cancelling || pausing || at_rest; }
  bool waits_in_queue() const {
    return phase == Phase::kWatched && seen.has_value() && seen->state == State::kWaiting && session == nullptr;
  }
  // Ends the run. Returns the session, to be closed.
  std::shared_ptr<WorkerSession> End(absl::Time now) {
    phase = Phase::kEnded;
    due = now;
    return std::move(session);
  }

  const std::string job_id;
  const int32_t attempt;
  const JobFolder folder;
  const std::string user;
  const int priority;
  const int replicas;
  const int workers;
  const google::protobuf::Timestamp create_time;

  // With the whole spec if this daemon submits it.
  v1::Job job;
  // True if an earlier daemon started the attempt. `job` then lacks parts of its spec.
  bool is_adopted = false;

  Phase phase;
  // When the thread must submit, find or settle it.
  absl::Time due = absl::InfinitePast();
  std::string secret;
  std::optional<LaunchedAttempt> seen;
  bool told_nodes = false;
  absl::Time absent_since = absl::InfiniteFuture();
  // InfiniteFuture while connected.
  absl::Time silent_since = absl::InfiniteFuture();
  std::shared_ptr<WorkerSession> session;
  bool cancelling = false, pausing = false, at_rest = false;
  // When the launcher must end it.
  absl::Time cancel_at = absl::InfiniteFuture();
  // Why it could not be started. OK if it could.
  absl::Status refusal;
  // True if it counts as lost because of its absence.
  bool is_lost = false;
};

ClusterJobs::ClusterJobs(Options options, Launcher* launcher, JobMachine* jobs)
    : options_(std::move(options)), worker_launcher_(options_.launch), launcher_(launcher), jobs_(jobs) {}

ClusterJobs::~ClusterJobs() { Stop(); }

void ClusterJobs::Begin(const std::vector<v1::Job>& jobs, ReleaseLease release_lease) {
  release_lease_ = std::move(release_lease);
  {
    MutexLock lock(&mutex_);
    for (const v1::Job& job : jobs) {
      if (!job.spec().has_cluster() || job.state() == v1::JOB_STATE_QUEUED || IsAtRest(job.state())) continue;
      const auto run = std::make_shared<Run>(job, options_.jobs_folder, Run::Phase::kFind);
      run->is_adopted = true;
      run->silent_since = MonotonicNow();
      run->secret = WorkerSecretOf(run->folder, run->attempt);
      run->cancelling = job.state() == v1::JOB_STATE_CANCELLING;
      run->pausing = IsToStopForNow(job.state());
      if (run->cancelling) run->cancel_at = MonotonicNow() + options_.cancel_grace;
      runs_[run->job_id] = run;
      spdlog::info("attempt adopted job={} attempt={}", run->job_id, run->attempt);
    }
  }
  thread_ = std::thread([this] { Watch(); });
}

void ClusterJobs::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool ClusterJobs::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

bool ClusterJobs::WaitUntilIdle(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(
                                     +[](Runs* runs) { return runs->empty(); }, &runs_),
                                 timeout);
}

void ClusterJobs::Start(const v1::Job& job, const std::vector<v1::Device>&) {
  const auto run = std::make_shared<Run>(job, options_.jobs_folder, Run::Phase::kSubmit);
  run->silent_since = MonotonicNow();
  {
    MutexLock lock(&mutex_);
    runs_[run->job_id] = run;
    Wake();
  }
  // The job may have been cancelled or paused after its start, when OnCancelling and OnPausing found no run.
  jobs_->ApplyWorkerEvents(run->job_id, run->attempt, {},
                           [this, run](absl::StatusOr<JobMachine::WorkerPosition> position) {
                             if (!position.ok()) return;
                             MutexLock lock(&mutex_);
                             if (position->state == v1::JOB_STATE_CANCELLING) run->cancelling = true;
                             if (IsToStopForNow(position->state)) run->pausing = true;
                             Wake();
                           });
}

std::optional<v1::Waiting> ClusterJobs::WaitingOfRun(const Run& run) const {
  if (run.is_stopping() || run.session != nullptr) return std::nullopt;
  const std::string name = launcher_->name();
  v1::Waiting waiting;
  waiting.set_reason(v1::Waiting::REASON_CLUSTER);
  if (run.waits_in_queue()) {
    waiting.set_message(absl::StrCat(name, " job ", run.seen->handle, " waits",
                                     run.seen->detail.empty() ? "" : ": ", run.seen->detail, "."));
    if (run.seen->expected_start.has_value()) {
      *waiting.mutable_estimated_start_time() = google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
          absl::ToUnixMicros(*run.seen->expected_start));
    }
  } else if (run.phase == Run::Phase::kSubmit || run.phase == Run::Phase::kFind) {
    waiting.set_message(absl::StrCat("The daemon submits it to ", name, "."));
  } else {
    return std::nullopt;
  }
  if (!away_.empty()) {
    absl::StrAppend(waiting.mutable_message(), " ", name, " does not answer now: ", away_, ".");
  }
  return waiting;
}

std::optional<v1::Waiting> ClusterJobs::WaitingOf(const std::string& job_id) {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(job_id);
  return found == runs_.end() ? std::nullopt : WaitingOfRun(*found->second);
}

std::vector<v1::QueuedJob> ClusterJobs::Queue() {
  using google::protobuf::util::TimeUtil;
  std::vector<v1::QueuedJob> queue;
  {
    MutexLock lock(&mutex_);
    for (const auto& [job_id, run] : runs_) {
      std::optional<v1::Waiting> waiting = WaitingOfRun(*run);
      if (!waiting.has_value()) continue;
      v1::QueuedJob& job = queue.emplace_back();
      job.set_job(JobName(job_id));
      job.set_user(run->user);
      job.set_priority(run->priority);
      job.set_devices(run->replicas);
      *job.mutable_create_time() = run->create_time;
      *job.mutable_waiting() = *std::move(waiting);
    }
  }
  std::sort(queue.begin(), queue.end(), [](const v1::QueuedJob& a, const v1::QueuedJob& b) {
    return TimeUtil::TimestampToNanoseconds(a.create_time()) < TimeUtil::TimestampToNanoseconds(b.create_time());
  });
  return queue;
}

absl::Status ClusterJobs::Admit(const internal::v1::Hello& hello,
                                const std::shared_ptr<WorkerSession>& session) {
  std::shared_ptr<WorkerSession> former;
  {
    MutexLock lock(&mutex_);
    if (stopping_) {
      // The next daemon decides.
      session->Close();
      return absl::OkStatus();
    }
    const auto found = runs_.find(hello.job_id());
    // Do not tell a stranger if the job, the attempt or the secret is wrong.
    if (found == runs_.end() || found->second->attempt != hello.attempt() ||
        found->second->phase == Run::Phase::kEnded || !IsWorkerSecret(hello.secret(), found->second->secret)) {
      spdlog::warn("worker dismissed attempt={}: no such attempt is at work, or its secret is wrong",
                   hello.attempt());
      return absl::FailedPreconditionError(
          absl::StrCat("attempt ", hello.attempt(), " of this job is not at work, or the secret is wrong"));
    }
    Run& run = *found->second;
    if (hello.worker() != 0) {
      spdlog::warn("worker dismissed job={} attempt={}: worker {} says hello", run.job_id, run.attempt,
                   hello.worker());
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", hello.worker(), " must not report; worker 0 reports for all"));
    }
    if (hello.protocol() != kWorkerProtocol) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the worker speaks protocol ", hello.protocol(), ", and the daemon ", kWorkerProtocol,
          "; install one version of Tandem on all nodes"));
    }
    spdlog::info("worker connected job={} attempt={} host={}", run.job_id, run.attempt,
                 hello.host().substr(0, 80));
    run.silent_since = absl::InfiniteFuture();
    if (run.cancelling) session->Cancel();
    if (run.pausing) session->Pause();
    former = std::exchange(run.session, session);
  }
  if (former != nullptr) former->Close();
  return absl::OkStatus();
}

void ClusterJobs::Leave(const std::string& job_id, const WorkerSession* session) {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(job_id);
  if (found == runs_.end() || found->second->session.get() != session) return;
  found->second->session = nullptr;
  found->second->silent_since = MonotonicNow();
}

ClusterJobs::Run* ClusterJobs::FindRun(const v1::Job& job) {
  const auto found = runs_.find(JobId(job.name()));
  return found == runs_.end() || found->second->attempt != job.attempt() ? nullptr : found->second.get();
}

void ClusterJobs::OnCancelling(const v1::Job& job) {
  MutexLock lock(&mutex_);
  Run* const run = FindRun(job);
  if (run == nullptr || std::exchange(run->cancelling, true)) return;
  if (run->session != nullptr) run->session->Cancel();
  const absl::Duration grace = run->waits_in_queue() ? absl::ZeroDuration() : options_.cancel_grace;
  run->cancel_at = std::min(run->cancel_at, MonotonicNow() + grace);
  Wake();
}

void ClusterJobs::OnPausing(const v1::Job& job) {
  MutexLock lock(&mutex_);
  Run* const run = FindRun(job);
  if (run == nullptr || std::exchange(run->pausing, true)) return;
  if (run->session != nullptr) run->session->Pause();
  if (run->waits_in_queue()) run->cancel_at = MonotonicNow();
  Wake();
}

void ClusterJobs::OnRest(const v1::Job& job) {
  MutexLock lock(&mutex_);
  Run* const run = FindRun(job);
  if (run == nullptr) return;
  run->at_rest = true;
  run->cancel_at = std::min(run->cancel_at, MonotonicNow() + options_.exit_grace);
  Wake();
}

void ClusterJobs::Tell(const std::string& job_id, const std::string& message) {
  // The job may just have ended.
  jobs_->AddNotice(job_id, message, [](const absl::StatusOr<v1::Job>&) {});
}

void ClusterJobs::Watch() {
  while (!Stopping()) {
    SubmitDue();
    if (MonotonicNow() >= observed_at_ + options_.observe_every) {
      Observe();
      observed_at_ = MonotonicNow();
    }
    CancelDue();
    SettleEnded();

    MutexLock lock(&mutex_);
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [job_id, run] : runs_) {
      if (run->phase != Run::Phase::kWatched) next = std::min(next, run->due);
      if (run->phase == Run::Phase::kWatched) next = std::min(next, run->cancel_at);
    }
    if (!runs_.empty()) next = std::min(next, observed_at_ + options_.observe_every);
    mutex_.AwaitWithTimeout(absl::Condition(
                                +[](ClusterJobs* jobs) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                  return jobs->wake_ || jobs->stopping_;
                                },
                                this),
                            std::max(absl::ZeroDuration(), next - MonotonicNow()));
    wake_ = false;
  }
}

void ClusterJobs::SubmitDue() {
  std::vector<std::shared_ptr<Run>> to_submit, to_find;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    for (const auto& [job_id, run] : runs_) {
      if (run->due > now) continue;
      if (run->phase == Run::Phase::kFind) to_find.push_back(run);
      if (run->phase != Run::Phase::kSubmit) continue;
      if (run->is_stopping()) {
        run->End(now);
      } else {
        to_submit.push_back(run);
      }
    }
  }
  for (const std::shared_ptr<Run>& run : to_find) {
    if (!Stopping()) TakeOver(run);
  }
  for (const std::shared_ptr<Run>& run : to_submit) {
    // The next daemon queues an unsubmitted job again.
    if (!Stopping()) Submit(run);
  }
}

absl::StatusOr<LaunchRequest> ClusterJobs::Prepare(const Run& run, const std::string& secret) {
  LaunchRequest request;
  request.job = run.job;
  request.job.set_folder(run.folder.path());
  // The daemon may have been replaced before it published the files of the last attempt.
  TANDEM_RETURN_IF_ERROR(PublishAttemptFiles(run.folder, run.attempt - 1));
  TANDEM_RETURN_IF_ERROR(PrepareAttemptFolder(run.folder, run.attempt, run.workers));
  TANDEM_ASSIGN_OR_RETURN(
      internal::v1::WorkerLaunch launch,
      worker_launcher_.MakeLaunch(request.job, DevicesOf(run.job.spec()), secret));
  launch.set_output_folder(run.folder.AttemptFolder(run.attempt));
  launch.set_daemon_certificate(options_.daemon_certificate);
  *launch.mutable_cluster() = run.job.spec().cluster();
  std::set<std::string> paths = {options_.worker_program, launch.job_folder()};
  const auto see = [&](std::string* text) {
    if (text->empty() || text->front() != '/') return;
    std::error_code error;
    if (absl::StartsWith(*text, options_.state_folder + "/")) {
      const std::filesystem::path real = std::filesystem::canonical(*text, error);
      if (!error) *text = real.string();
    }
    if (std::filesystem::exists(*text, error)) paths.insert(*text);
  };
  VisitTexts(launch.mutable_dataset(), see);
  see(launch.mutable_initial_weights_path());
  request.required_paths.assign(paths.begin(), paths.end());

  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(launch, &text)) {
    return absl::InternalError("cannot write the launch file as text");
  }
  const std::string path = run.folder.LaunchPath(run.attempt);
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(
      Env::Real(), path, [&](WritableFile& file) { return file.Append(text); }, {.is_private = true}));
  request.command = {options_.worker_program, "--launch", path};
  AddSandboxArguments(options_.sandbox, &request.command);

  int threads = 1;
  for (const v1::Device& device : launch.devices()) threads = std::max(threads, device.threads());
  request.environment = {{"OMP_NUM_THREADS", absl::StrCat(threads)},
                         {"OMP_WAIT_POLICY", "passive"},
                         {"OMP_DYNAMIC", "false"},
                         {"TANDEM_CPU_ALGORITHMS", options_.algorithms_folder + "/cpu-algorithms"},
                         {"TANDEM_CUDA_PLANS", options_.algorithms_folder + "/cuda-plans"}};
  for (const std::string& variable : CollectiveEnvironment(launch)) {
    request.environment.emplace_back(absl::StrSplit(variable, absl::MaxSplits('=', 1)));
  }
  return request;
}

void ClusterJobs::Submit(const std::shared_ptr<Run>& run) {
  std::string secret;
  {
    MutexLock lock(&mutex_);
    secret = run->secret;
  }
  absl::StatusOr<LaunchedAttempt> launched = absl::UnknownError("");
  const auto submit = [&]() -> absl::StatusOr<LaunchedAttempt> {
    // A lost answer's Submit has the same secret: its workers may still start.
    if (secret.empty()) {
      TANDEM_ASSIGN_OR_RETURN(secret, MakeWorkerSecret());
    }
    {
      // The worker may connect before Submit returns.
      MutexLock lock(&mutex_);
      run->secret = secret;
    }
    TANDEM_ASSIGN_OR_RETURN(const LaunchRequest request, Prepare(*run, secret));
    return launcher_->Submit(request);
  };
  launched = submit();
  if (launched.ok()) {
    spdlog::info("attempt submitted job={} attempt={} to={} id={}", run->job_id, run->attempt, launcher_->name(),
                 launched->handle);
    Tell(run->job_id, absl::StrCat("Submitted to ", launcher_->name(), " as job ", launched->handle, "."));
  } else {
    spdlog::warn("attempt not submitted job={} attempt={}: {}", run->job_id, run->attempt,
                 launched.status().ToString(absl::StatusToStringMode::kWithNoExtraData));
  }
  const absl::Time now = MonotonicNow();
  MutexLock lock(&mutex_);
  away_.clear();
  if (launched.ok()) {
    run->phase = Run::Phase::kWatched;
    run->seen = *std::move(launched);
    run->job.clear_spec();
    // Cancelled or paused meanwhile.
    if (run->is_stopping()) run->cancel_at = now;
  } else if (absl::IsUnavailable(launched.status())) {
    away_ = std::string(launched.status().message());
    run->phase = Run::Phase::kFind;
    run->due = now + kRetryInterval;
  } else {
    run->refusal = launched.status();
    run->End(now);
  }
}

void ClusterJobs::TakeOver(const std::shared_ptr<Run>& run) {
  absl::StatusOr<std::optional<LaunchedAttempt>> found = launcher_->TakeOver(run->id());
  const bool was_started = WasStarted(run->folder, run->attempt);
  bool to_queue = false;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    if (!found.ok()) {
      away_ = std::string(found.status().message());
      run->due = now + kRetryInterval;
      return;
    }
    away_.clear();
    if (found->has_value()) {
      run->seen = **found;
      run->phase = Run::Phase::kWatched;
      if (run->waits_in_queue() && run->is_stopping()) run->cancel_at = now;
    } else if (was_started || (run->is_adopted && run->job.state() != v1::JOB_STATE_STARTING)) {
      run->phase = Run::Phase::kWatched;
      run->absent_since = now;
    } else if (!run->is_adopted) {
      run->phase = Run::Phase::kSubmit;
      run->due = now;
    } else {
      to_queue = true;
    }
  }
  if (!to_queue) return;
  // It was never submitted, or Slurm forgot it before it started.
  release_lease_(run->job_id, run->attempt);
  const PendingResult<v1::Job> requeued;
  jobs_->Requeue(run->job_id, run->attempt, requeued.Callback());
  const absl::Status status = requeued.Wait().status();
  MutexLock lock(&mutex_);
  if (status.ok()) {
    const auto entry = runs_.find(run->job_id);
    if (entry != runs_.end() && entry->second == run) runs_.erase(entry);
    return;
  }
  spdlog::error("job not queued again job={}: {}", run->job_id, status.ToString());
  run->phase = Run::Phase::kWatched;
  run->absent_since = MonotonicNow();
}

void ClusterJobs::Observe() {
  const absl::StatusOr<std::vector<LaunchedAttempt>> answer = launcher_->Observe();
  std::vector<std::shared_ptr<Run>> watched;
  std::vector<LaunchedAttempt> strays;
  {
    MutexLock lock(&mutex_);
    if (!answer.ok()) {
      if (away_.empty()) spdlog::warn("{} does not answer: {}", launcher_->name(), answer.status().ToString());
      away_ = std::string(answer.status().message());
      return;
    }
    if (!away_.empty()) spdlog::info("{} answers again", launcher_->name());
    away_.clear();
    for (const auto& [job_id, run] : runs_) {
      if (run->phase == Run::Phase::kWatched) watched.push_back(run);
    }
    for (const LaunchedAttempt& attempt : *answer) {
      const auto run = runs_.find(attempt.id.job_id);
      const bool is_ours = run != runs_.end() && run->second->attempt == attempt.id.attempt;
      if (!is_ours && attempt.state != State::kEnded) strays.push_back(attempt);
    }
  }
  std::map<AttemptId, const LaunchedAttempt*> seen;
  for (const LaunchedAttempt& attempt : *answer) {
    const LaunchedAttempt*& known = seen[attempt.id];
    // Of two jobs with one tag, one does nothing: the attempt has ended when both have.
    if (known == nullptr || known->state == State::kEnded) known = &attempt;
  }
  for (const std::shared_ptr<Run>& run : watched) {
    const auto found = seen.find(run->id());
    Note(run, found == seen.end() ? nullptr : found->second);
  }
  CancelStray(strays);
}

void ClusterJobs::Note(const std::shared_ptr<Run>& run, const LaunchedAttempt* seen) {
  std::optional<int> end;
  if (seen == nullptr) {
    end = EndOfAttempt(run->folder, run->attempt);
  } else if (seen->state == State::kRunning) {
    if (const absl::Status published = PublishAttemptFiles(run->folder, run->attempt); !published.ok()) {
      spdlog::warn("cannot publish files job={} attempt={}: {}", run->job_id, run->attempt,
                   published.ToString());
    }
  }
  std::shared_ptr<WorkerSession> session;
  std::string news;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    if (seen != nullptr) {
      run->absent_since = absl::InfiniteFuture();
      run->seen = *seen;
      if (seen->state == State::kRunning && !run->told_nodes) {
        run->told_nodes = true;
        // An earlier daemon may have told.
        if (!run->is_adopted && !seen->nodes.empty()) {
          news = absl::StrCat(launcher_->name(), " job ", seen->handle, " runs on ",
                              absl::StrJoin(seen->nodes, ", "), ".");
        }
      }
      if (seen->state == State::kEnded) session = run->End(now);
    } else {
      run->absent_since = std::min(run->absent_since, now);
      const bool is_silent = run->session == nullptr && run->silent_since + options_.absence_limit <= now;
      run->is_lost = is_silent && run->absent_since + options_.absence_limit <= now;
      if (end.has_value() || run->is_lost || (run->at_rest && run->session == nullptr)) {
        session = run->End(now);
      }
    }
  }
  if (!news.empty()) Tell(run->job_id, news);
  if (session != nullptr) session->Close();
}

void ClusterJobs::CancelStray(const std::vector<LaunchedAttempt>& strays) {
  for (const LaunchedAttempt& attempt : strays) {
    const absl::StatusOr<v1::Job> job = jobs_->Get(attempt.id.job_id);
    bool is_over = false;
    if (job.ok()) {
      is_over = IsAtRest(job->state()) || job->state() == v1::JOB_STATE_QUEUED ||
                job->attempt() != attempt.id.attempt;
    } else if (absl::IsNotFound(job.status())) {
      // Another daemon of this user may have a job that this daemon never had.
      const absl::StatusOr<bool> was_deleted = jobs_->WasDeleted(attempt.id.job_id);
      is_over = was_deleted.ok() && *was_deleted;
    }
    if (!is_over) continue;
    spdlog::warn("cancelling an attempt that is over job={} attempt={} id={}", attempt.id.job_id,
                 attempt.id.attempt, attempt.handle);
    launcher_->Cancel(attempt).IgnoreError();
  }
}

void ClusterJobs::CancelDue() {
  std::vector<std::pair<std::shared_ptr<Run>, LaunchedAttempt>> due;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    for (const auto& [job_id, run] : runs_) {
      if (run->phase != Run::Phase::kWatched || run->cancel_at > now) continue;
      run->cancel_at = now + options_.exit_grace;
      if (run->seen.has_value() && run->seen->state != State::kEnded) due.emplace_back(run, *run->seen);
    }
  }
  for (const auto& [run, attempt] : due) {
    spdlog::info("cancelling job={} attempt={} id={}", run->job_id, run->attempt, attempt.handle);
    const absl::Status status = launcher_->Cancel(attempt);
    if (status.ok()) {
      // See the end soon.
      observed_at_ = std::min(observed_at_, MonotonicNow() - options_.observe_every + absl::Milliseconds(300));
      continue;
    }
    spdlog::warn("cannot cancel job={} attempt={}: {}", run->job_id, run->attempt, status.ToString());
    MutexLock lock(&mutex_);
    run->cancel_at = MonotonicNow() + kRetryInterval;
  }
}

void ClusterJobs::SettleEnded() {
  std::vector<std::shared_ptr<Run>> ended;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    for (const auto& [job_id, run] : runs_) {
      if (run->phase == Run::Phase::kEnded && run->due <= now) ended.push_back(run);
    }
  }
  for (const std::shared_ptr<Run>& run : ended) {
    if (!Stopping()) Settle(run);
  }
}

void ClusterJobs::DescribeLoss(const Run& run, v1::StateReason* reason, std::string* message) {
  const std::string name = launcher_->name();
  *reason = v1::STATE_REASON_WORKER_LOST;
  if (!run.refusal.ok()) {
    *reason = v1::STATE_REASON_WORKER_START_FAILED;
    *message = absl::StrCat("The job could not be given to ", name, ": ", run.refusal.message());
    return;
  }
  if (!run.seen.has_value() && !run.is_lost) {
    *message = absl::StrCat("It was not yet submitted to ", name, ".");
    return;
  }
  const std::string who = run.seen.has_value() ? absl::StrCat(name, " job ", run.seen->handle)
                                               : absl::StrCat("Its attempt in ", name);
  if (run.is_lost) {
    *message = absl::StrCat(who, " is unknown to ", name, ", and its workers were silent, for more than ",
                            absl::FormatDuration(options_.absence_limit), ".");
    return;
  }
  if (run.seen->state == State::kEnded) *reason = run.seen->reason;
  *message = absl::StrCat(who, " ended", run.seen->detail.empty() ? "" : ": ", run.seen->detail, ".");
  // The reasons of the cluster itself explain enough.
  if (*reason != v1::STATE_REASON_WORKER_LOST) return;
  const std::optional<int> code = EndOfAttempt(run.folder, run.attempt);
  if (code == kBatchPathMissing || code == kWorkerBadLaunch) *reason = v1::STATE_REASON_WORKER_START_FAILED;
  if (code.has_value()) {
    *message = absl::StrCat(who, *code == 0 ? " ended without saying how training ended."
                                            : absl::StrCat(" ended with the exit code ", *code, "."));
  }
  for (int worker = 0; worker < run.workers; ++worker) {
    const std::string line = LastLogLine(absl::StrCat(run.folder.path(), "/worker-", worker, ".log"));
    if (line.empty() || absl::StartsWith(line, "srun: ") || absl::StartsWith(line, "slurmstepd: ")) continue;
    absl::StrAppend(message, " The last line of the log of worker ", worker, ": ", line);
    return;
  }
  const std::string line = LastLogLine(run.folder.AttemptFolder(run.attempt) + "/batch.log");
  if (!line.empty()) absl::StrAppend(message, " The last line of the batch script's output: ", line);
}

// Every step can be repeated if the store or the disk fails.
void ClusterJobs::Settle(const std::shared_ptr<Run>& run) {
  absl::Status settled = PublishAttemptFiles(run->folder, run->attempt);
  if (settled.ok()) {
    v1::StateReason reason = v1::STATE_REASON_UNSPECIFIED;
    std::string message;
    DescribeLoss(*run, &reason, &message);
    settled = SettleWorker(jobs_, run->job_id, run->attempt, run->folder.SpoolPath(run->attempt), reason, message,
                           [this] { return Stopping(); });
  }
  if (!settled.ok()) {
    if (!Stopping()) {
      spdlog::error("cannot record the end of an attempt, trying again job={} attempt={}: {}", run->job_id,
                    run->attempt, settled.ToString());
    }
    MutexLock lock(&mutex_);
    run->due = MonotonicNow() + kRetryInterval;
    return;
  }
  unlink(run->folder.SpoolPath(run->attempt).c_str());
  RemoveAttemptFiles(run->folder, run->attempt);
  spdlog::info("attempt ended job={} attempt={}", run->job_id, run->attempt);
  {
    // Erase the run before the lease returns, because the next attempt may then start.
    MutexLock lock(&mutex_);
    const auto found = runs_.find(run->job_id);
    if (found != runs_.end() && found->second == run) runs_.erase(found);
  }
  release_lease_(run->job_id, run->attempt);
}

}  // namespace tandem
