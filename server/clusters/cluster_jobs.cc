#include "server/clusters/cluster_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"
#include "server/clusters/attempt_files.h"
#include "server/store/pending_result.h"
#include "server/store/records.h"
#include "server/store/timestamps.h"
#include "server/workers/settlement.h"
#include "server/workers/worker_protocol.h"
#include "server/workers/worker_secret.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using State = LaunchedAttempt::State;

constexpr absl::Duration kRetryInterval = absl::Seconds(2);

// Returns Clock::Elapsed() as an absl::Time, which does not jump.
absl::Time MonotonicNow() { return absl::UnixEpoch() + Clock::Real()->Elapsed(); }

// Returns whether Slurm counts both jobs, which have one user, towards the same limits.
bool HaveSameLimit(const v1::SlurmCluster& a, const v1::SlurmCluster& b) {
  return a.partition() == b.partition() && a.account() == b.account() && a.qos() == b.qos();
}

}  // namespace

ClusterJobs::ClusterJobs(Options options, Launcher* launcher, JobMachine* jobs)
    : options_(std::move(options)), preparer_(options_.launch), launcher_(launcher), jobs_(jobs) {}

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
      if (run->state == v1::JOB_STATE_CANCELLING || (IsToStopForNow(run->state) && !job.has_lease_time())) {
        run->cancel_at = MonotonicNow() + GraceOf(job);
      }
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
  MutexLock lock(&mutex_);
  runs_[run->job_id] = run;
  Wake();
}

std::optional<v1::Waiting> ClusterJobs::WaitingOfRun(const Run& run) const {
  const std::string name = launcher_->name();
  return DescribeWaiting(run, name,
                         away_.empty() ? ""
                                       : absl::StrCat(name, " has not answered since ",
                                                      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", away_since_,
                                                                       absl::UTCTimeZone()),
                                                      ": ", away_, "."));
}

void ClusterJobs::NoteAnswer(const absl::Status& answer) {
  if (answer.ok() && !away_.empty()) spdlog::info("{} answers again", launcher_->name());
  if (!answer.ok() && away_.empty()) {
    spdlog::warn("{} does not answer: {}", launcher_->name(), answer.ToString());
    away_since_ = Clock::Real()->Now();
  }
  away_ = std::string(answer.message());
}

std::optional<v1::Waiting> ClusterJobs::WaitingOf(const std::string& job_id) {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(job_id);
  return found == runs_.end() ? std::nullopt : WaitingOfRun(*found->second);
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
        found->second->phase == Run::Phase::kEnded ||
        !IsWorkerSecret(hello.secret(), found->second->secret)) {
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
      return absl::FailedPreconditionError(absl::StrCat("the worker speaks protocol ", hello.protocol(),
                                                        ", and the daemon ", kWorkerProtocol,
                                                        "; install one version of Tandem on all nodes"));
    }
    spdlog::info("worker connected job={} attempt={} host={}", run.job_id, run.attempt,
                 hello.host().substr(0, 80));
    run.silent_since = absl::InfiniteFuture();
    run.is_unreported = false;
    if (run.state == v1::JOB_STATE_CANCELLING) session->Cancel();
    if (IsToStopForNow(run.state)) session->Pause();
    former = std::exchange(run.session, session);
  }
  if (former != nullptr) former->Close();
  return absl::OkStatus();
}

// A client that hears of a file finds it in the job's folder.
void ClusterJobs::BeforeApply(const std::string& job_id, int32_t attempt,
                              const std::vector<internal::v1::WorkerEvent>& events) {
  if (std::none_of(events.begin(), events.end(), [](const internal::v1::WorkerEvent& event) {
        return event.report().has_artifact() || event.report().has_checkpoint() || event.has_finished();
      })) {
    return;
  }
  std::shared_ptr<Run> run;
  {
    MutexLock lock(&mutex_);
    const auto found = runs_.find(job_id);
    if (found == runs_.end() || found->second->attempt != attempt) return;
    run = found->second;
  }
  // Settle publishes again.
  if (const absl::Status published = Publish(run->folder, attempt); !published.ok()) {
    spdlog::warn("cannot publish files job={} attempt={}: {}", job_id, attempt, published.ToString());
  }
}

absl::Status ClusterJobs::Publish(const JobFolder& folder, int32_t attempt) {
  MutexLock lock(&publish_mutex_);
  return PublishAttemptFiles(folder, attempt);
}

void ClusterJobs::Leave(const std::string& job_id, const WorkerSession* session) {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(job_id);
  if (found == runs_.end() || found->second->session.get() != session) return;
  found->second->session = nullptr;
  found->second->silent_since = MonotonicNow();
}

void ClusterJobs::OnMoved(const v1::Job& job) {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(JobId(job.name()));
  if (found == runs_.end() || found->second->attempt != job.attempt()) return;
  Run& run = *found->second;
  run.state = job.state();
  const absl::Time now = MonotonicNow();
  if (run.state == v1::JOB_STATE_CANCELLING) {
    if (run.session != nullptr) run.session->Cancel();
    run.cancel_at = std::min(run.cancel_at, now + GraceOf(job));
  } else if (IsToStopForNow(run.state)) {
    if (run.session != nullptr) run.session->Pause();
    if (!job.has_lease_time()) run.cancel_at = now;
  } else if (!IsHolding(run.state)) {
    // Its workers must exit.
    run.cancel_at = std::min(run.cancel_at, now + options_.exit_grace);
  }
  Wake();
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
    mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](ClusterJobs* jobs) ABSL_NO_THREAD_SAFETY_ANALYSIS { return jobs->wake_ || jobs->stopping_; },
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
      if (run->phase == Run::Phase::kSubmit && run->is_stopping()) {
        run->refusal = absl::OkStatus();
        run->End(now);
      }
      if (run->due > now) continue;
      if (run->phase == Run::Phase::kFind) to_find.push_back(run);
      if (run->phase == Run::Phase::kSubmit) to_submit.push_back(run);
    }
  }
  // Among jobs that wait for one limit, the oldest is submitted first.
  std::stable_sort(to_submit.begin(), to_submit.end(),
                   [](const std::shared_ptr<Run>& a, const std::shared_ptr<Run>& b) {
                     return TimeOf(a->job.create_time()) < TimeOf(b->job.create_time());
                   });
  for (const std::shared_ptr<Run>& run : to_find) {
    if (!Stopping()) TakeOver(run);
  }
  for (const std::shared_ptr<Run>& run : to_submit) {
    // The next daemon queues an unsubmitted job again.
    if (!Stopping() && !AwaitsLimit(run.get())) Submit(run);
  }
}

bool ClusterJobs::AwaitsLimit(Run* run) {
  MutexLock lock(&mutex_);
  const absl::Time now = MonotonicNow();
  for (const auto& [job_id, other] : runs_) {
    if (other->phase != Run::Phase::kSubmit || !absl::IsAborted(other->refusal) || other->due <= now ||
        !HaveSameLimit(other->job.spec().cluster().slurm(), run->job.spec().cluster().slurm())) {
      continue;
    }
    run->refusal = other->refusal;
    run->due = other->due;
    return true;
  }
  return false;
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
    // The daemon may have been replaced before it published the files of the last attempt.
    TANDEM_RETURN_IF_ERROR(Publish(run->folder, run->attempt - 1));
    TANDEM_ASSIGN_OR_RETURN(const LaunchRequest request, preparer_.Prepare(run->job, run->folder, secret));
    absl::StatusOr<LaunchedAttempt> answer = launcher_->Submit(request);
    // Another error may come from this machine, such as a full disk, and says nothing about the cluster.
    if (answer.ok() || absl::IsUnavailable(answer.status()) || absl::IsFailedPrecondition(answer.status())) {
      MutexLock lock(&mutex_);
      NoteAnswer(answer.status());
    }
    return answer;
  };
  launched = submit();
  if (launched.ok()) {
    spdlog::info("attempt submitted job={} attempt={} to={} id={}", run->job_id, run->attempt,
                 launcher_->name(), launched->handle);
    Record(*run, *launched,
           absl::StrCat("Submitted to ", launcher_->name(), " as job ", launched->handle, "."));
  } else {
    spdlog::warn("attempt not submitted job={} attempt={}: {}", run->job_id, run->attempt,
                 launched.status().ToString(absl::StatusToStringMode::kWithNoExtraData));
  }
  const absl::Time now = MonotonicNow();
  MutexLock lock(&mutex_);
  run->refusal = absl::OkStatus();
  if (launched.ok()) {
    run->phase = Run::Phase::kWatched;
    run->seen = *std::move(launched);
    run->job.clear_spec();
    // Cancelled or paused meanwhile.
    if (run->is_stopping()) run->cancel_at = now;
  } else if (absl::IsUnavailable(launched.status())) {
    run->phase = Run::Phase::kFind;
    run->due = now + kRetryInterval;
  } else {
    run->refusal = launched.status();
    if (absl::IsAborted(launched.status())) {
      run->due = now + options_.resubmit_every;
    } else {
      run->End(now);
    }
  }
}

void ClusterJobs::TakeOver(const std::shared_ptr<Run>& run) {
  absl::StatusOr<std::optional<LaunchedAttempt>> found = launcher_->TakeOver(run->id());
  const bool was_started = StartOfAttempt(run->folder, run->attempt).has_value();
  bool to_queue = false;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    NoteAnswer(found.status());
    if (!found.ok()) {
      run->due = now + kRetryInterval;
      return;
    }
    if (found->has_value()) {
      run->seen = **found;
      run->phase = Run::Phase::kWatched;
      if (run->waits_in_queue() && run->is_stopping()) run->cancel_at = now;
    } else if (was_started || run->state == v1::JOB_STATE_RUNNING ||
               (run->is_adopted && run->state != v1::JOB_STATE_STARTING)) {
      run->phase = Run::Phase::kWatched;
      run->absent_since = now;
    } else if (!run->is_adopted && run->job.has_spec()) {
      run->phase = Run::Phase::kSubmit;
      run->due = now;
    } else {
      to_queue = true;
    }
  }
  if (!to_queue) return;
  // It was never submitted, or Slurm forgot it before it started.
  const PendingResult<v1::Job> requeued;
  jobs_->Requeue(run->job_id, run->attempt, requeued.Callback());
  const absl::Status status = requeued.Wait().status();
  if (!status.ok()) {
    spdlog::error("job not queued again job={}: {}", run->job_id, status.ToString());
    MutexLock lock(&mutex_);
    run->phase = Run::Phase::kWatched;
    run->absent_since = MonotonicNow();
    return;
  }
  Erase(run);
}

void ClusterJobs::Erase(const std::shared_ptr<Run>& run) {
  {
    // Erase the run before the lease returns, because the next attempt may then start.
    MutexLock lock(&mutex_);
    const auto found = runs_.find(run->job_id);
    if (found != runs_.end() && found->second == run) runs_.erase(found);
  }
  release_lease_(run->job_id, run->attempt);
}

void ClusterJobs::Observe() {
  const absl::StatusOr<std::vector<LaunchedAttempt>> answer = launcher_->Observe();
  std::vector<std::shared_ptr<Run>> watched;
  std::vector<LaunchedAttempt> strays;
  {
    MutexLock lock(&mutex_);
    NoteAnswer(answer.status());
    if (!answer.ok()) return;
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

void ClusterJobs::Record(Run& run, const LaunchedAttempt& seen, const std::string& notice) {
  v1::ClusterAttempt& attempt = *run.job.mutable_cluster_attempt();
  attempt.set_id(seen.handle);
  attempt.mutable_nodes()->Assign(seen.nodes.begin(), seen.nodes.end());
  jobs_->SetClusterAttempt(run.job_id, run.attempt, attempt, notice);
}

void ClusterJobs::Note(const std::shared_ptr<Run>& run, const LaunchedAttempt* seen) {
  std::optional<AttemptEnd> end;
  if (seen == nullptr) end = EndOfAttempt(run->folder, run->attempt);
  // A job in the queue has no such file. Do not look for the files of a long queue.
  const bool was_started = (seen == nullptr || seen->state != State::kWaiting) &&
                           StartOfAttempt(run->folder, run->attempt).has_value();
  std::shared_ptr<WorkerSession> session;
  std::string place, news;
  {
    const absl::Time now = MonotonicNow();
    MutexLock lock(&mutex_);
    // A person may have put the attempt back into the queue, where its script would do nothing.
    const bool has_begun =
        run->state == v1::JOB_STATE_RUNNING || run->job.has_lease_time() || run->begun_at <= now;
    const bool is_absent = seen == nullptr || (seen->state == State::kWaiting && has_begun);
    run->absent_since = is_absent ? std::min(run->absent_since, now) : absl::InfiniteFuture();
    const bool is_silent = run->session == nullptr && run->silent_since + options_.absence_limit <= now;
    run->is_lost = is_silent && run->absent_since + options_.absence_limit <= now;
    if (seen != nullptr) {
      run->seen = *seen;
      // An earlier daemon may have recorded the nodes.
      if (seen->state != State::kWaiting && !seen->nodes.empty() &&
          run->job.cluster_attempt().nodes().empty()) {
        place = absl::StrCat(launcher_->name(), " job ", seen->handle,
                             seen->state == State::kRunning ? " runs on " : " ran on ",
                             absl::StrJoin(seen->nodes, ", "), ".");
      }
      // Before the script, the cluster may run its own programs for minutes.
      if (was_started) run->begun_at = std::min(run->begun_at, now);
      if (seen->state == State::kRunning && run->is_unreported &&
          run->begun_at + options_.report_limit <= now) {
        run->is_unreported = false;
        news = DescribeSilence(*run, launcher_->name(), options_.report_limit,
                               options_.launch.launch.daemon_target);
      }
      if (seen->state == State::kEnded || run->is_lost) session = run->End(now);
    } else {
      if (end.has_value() || run->is_lost || (!IsHolding(run->state) && run->session == nullptr)) {
        session = run->End(now);
      } else if (run->state != v1::JOB_STATE_RUNNING && !was_started && run->session == nullptr &&
                 run->absent_since + options_.unstarted_absence_limit <= now) {
        if (run->is_stopping()) {
          session = run->End(now);
        } else {
          // TakeOver looks once more, and queues the job again.
          run->phase = Run::Phase::kFind;
          run->due = now;
        }
      }
    }
  }
  if (!place.empty()) Record(*run, *seen, place);
  if (!news.empty()) jobs_->AddNotice(run->job_id, news);
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
      observed_at_ =
          std::min(observed_at_, MonotonicNow() - options_.observe_every + absl::Milliseconds(300));
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

// Every step can be repeated if the store or the disk fails.
void ClusterJobs::Settle(const std::shared_ptr<Run>& run) {
  // It may be in the launcher's queue again. There, its script would do nothing.
  if (run->is_lost && run->seen.has_value()) launcher_->Cancel(*run->seen).IgnoreError();
  absl::Status settled = Publish(run->folder, run->attempt);
  if (settled.ok()) {
    const AttemptLoss loss = DescribeLoss(*run, launcher_->name(), options_.absence_limit);
    settled = SettleWorker(jobs_, run->job_id, run->attempt, run->folder.SpoolPath(run->attempt), loss.reason,
                           loss.message, [this] { return Stopping(); });
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
  {
    // A session's last batch may still publish.
    MutexLock lock(&publish_mutex_);
    RemoveAttemptFiles(run->folder, run->attempt);
  }
  spdlog::info("attempt ended job={} attempt={}", run->job_id, run->attempt);
  Erase(run);
}

}  // namespace tandem
