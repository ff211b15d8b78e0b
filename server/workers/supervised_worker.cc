#include "server/workers/supervised_worker.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/store/records.h"
#include "server/workers/exit_codes.h"
#include "server/workers/worker_log.h"
#include "server/workers/worker_protocol.h"
#include "server/workers/worker_secret.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// The message until more is known about a worker of an earlier daemon.
constexpr char kEndedUnwatched[] = "The worker ended while no daemon was running.";

// Returns true if a device may be at fault: the process got a signal that shows a broken processor or
// program, or CUDA failed.
bool IsCrash(const ProcessGroup::End& end) {
  return end.signal == SIGSEGV || end.signal == SIGBUS || end.signal == SIGILL || end.signal == SIGFPE ||
         end.signal == SIGABRT || end.exit_code == kWorkerDeviceFailed;
}

bool IsRunning(const std::unique_ptr<ProcessGroup>& process) { return process != nullptr; }

}  // namespace

std::string DescribeForeignProtocol(int32_t protocol) {
  return absl::StrCat("The worker has another version of Tandem than the daemon: it speaks protocol ",
                      protocol, ", and the daemon speaks ", kWorkerProtocol, ".");
}

SupervisedWorker::SupervisedWorker(const v1::Job& job, std::vector<v1::Device> devices,
                                   absl::Time launch_until)
    : job_id_(JobId(job.name())),
      attempt_(job.attempt()),
      folder_(job.folder()),
      workers_(std::max(1, job.spec().replicas().workers())),
      replicas_(static_cast<int>(devices.size())),
      job_(job),
      devices_(std::move(devices)),
      launch_until_(launch_until),
      phase_(Phase::kLaunching) {}

SupervisedWorker::SupervisedWorker(const v1::Job& job)
    : job_id_(JobId(job.name())),
      attempt_(job.attempt()),
      folder_(job.folder()),
      workers_(std::max(1, job.spec().replicas().workers())),
      replicas_(job.devices_size()),
      launch_until_(absl::InfiniteFuture()),
      secret_(WorkerSecretOf(folder_, attempt_)),
      phase_(Phase::kEnded),
      lost_message_(kEndedUnwatched) {}

absl::Time SupervisedWorker::NextAction(absl::Duration silence_limit) const {
  if (phase_ != Phase::kRunning) return attend_at_;
  const absl::Time next = std::min({attend_at_, terminate_at_, kill_at_});
  return IsAlone() ? std::min(next, silent_since_ + silence_limit) : next;
}

void SupervisedWorker::Run(Processes processes, absl::Time connect_by) {
  processes_ = std::move(processes);
  phase_ = Phase::kRunning;
  attend_at_ = absl::InfiniteFuture();
  if (session_ == nullptr) silent_since_ = connect_by;
}

void SupervisedWorker::EndWithoutProcess() {
  phase_ = Phase::kEnded;
  attend_at_ = absl::InfinitePast();
}

void SupervisedWorker::FailStart(absl::string_view why) {
  lost_reason_ = v1::STATE_REASON_WORKER_START_FAILED;
  lost_message_ = absl::StrCat("The worker could not be started: ", why);
  EndWithoutProcess();
}

bool SupervisedWorker::HasProcess() const {
  return std::any_of(processes_.begin(), processes_.end(), IsRunning);
}

std::shared_ptr<WorkerSession> SupervisedWorker::End() {
  phase_ = Phase::kEnded;
  return std::move(session_);
}

bool SupervisedWorker::HasSecret(absl::string_view secret) const { return IsWorkerSecret(secret, secret_); }

std::shared_ptr<WorkerSession> SupervisedWorker::Connect(const std::shared_ptr<WorkerSession>& session) {
  silent_since_ = absl::InfiniteFuture();
  if (cancelling_) session->Cancel();
  if (pausing_) session->Pause();
  return std::exchange(session_, session);
}

bool SupervisedWorker::Disconnect(const WorkerSession* session, absl::Time now) {
  if (session_.get() != session) return false;
  silent_since_ = now;
  return true;
}

void SupervisedWorker::Cancel(absl::Time deadline) {
  if (std::exchange(cancelling_, true)) return;
  TerminateBy(deadline);
  if (session_ != nullptr) session_->Cancel();
}

void SupervisedWorker::Pause() {
  pausing_ = true;
  if (session_ != nullptr) session_->Pause();
}

void SupervisedWorker::TerminateBy(absl::Time deadline) { terminate_at_ = std::min(terminate_at_, deadline); }

void SupervisedWorker::KillBy(absl::Time deadline) {
  kill_at_ = std::min(kill_at_, deadline);
  killed_ = true;
}

void SupervisedWorker::Dismiss(int32_t protocol, absl::Time deadline) {
  foreign_protocol_ = protocol;
  TerminateBy(deadline);
}

void SupervisedWorker::SendDueSignals(absl::Time now, absl::Duration silence_limit,
                                      absl::Duration kill_grace) {
  if (phase_ != Phase::kRunning) return;
  if (terminate_at_ <= now) {
    spdlog::warn("worker does not end, sending SIGTERM job={} attempt={}", job_id_, attempt_);
    SignalAll(SIGTERM);
    killed_ = true;
    terminate_at_ = absl::InfiniteFuture();
    kill_at_ = std::min(kill_at_, now + kill_grace);
  }
  if (IsAlone() && silent_since_ + silence_limit <= now) {
    spdlog::warn("worker is silent, sending SIGKILL job={} attempt={}", job_id_, attempt_);
    NoteSilence(silence_limit);
    SignalAll(SIGKILL);
    killed_ = true;
    silent_since_ = absl::InfiniteFuture();
  }
  if (kill_at_ <= now) {
    spdlog::warn("worker does not end, sending SIGKILL job={} attempt={}", job_id_, attempt_);
    SignalAll(SIGKILL);
    kill_at_ = absl::InfiniteFuture();
  }
}

bool SupervisedWorker::IsAlone() const {
  return workers_ == 1 || std::count_if(processes_.begin(), processes_.end(), IsRunning) == 1;
}

void SupervisedWorker::SignalAll(int signal) const {
  for (const std::unique_ptr<ProcessGroup>& process : processes_) {
    if (IsRunning(process)) process->SignalGroup(signal);
  }
}

void SupervisedWorker::NoteEnd(int index, const ProcessGroup::End& end, bool killed,
                               std::optional<int32_t> foreign_protocol) {
  if (!killed && IsCrash(end)) crashed_ = true;
  NoteLoss(index, end, killed);
  if (foreign_protocol.has_value()) lost_message_ = DescribeForeignProtocol(*foreign_protocol);
}

void SupervisedWorker::NoteLoss(int index, const ProcessGroup::End& end, bool killed) {
  // In a group, a worker that did its part is fine. The first worker that failed counts, unless it only
  // noticed another's failure.
  const bool done = end.known && end.exit_code == kWorkerDone;
  if (workers_ > 1 && index != 0 && done) return;
  const bool hearsay = end.exit_code == kWorkerGroupFailed;
  const bool is_first =
      lost_message_.empty() || (lost_message_ == kEndedUnwatched && (!killed || workers_ == 1));
  if (!is_first && (killed || hearsay || !lost_by_hearsay_)) return;
  lost_by_hearsay_ = hearsay;
  if (killed) {
    lost_message_ = "The worker did not stop in time and was killed.";
    return;
  }
  lost_message_ =
      absl::StrCat(NameOf(index), " ", DescribeEnd(end), done ? " without saying how training ended." : ".");
  // Usually a full disk, which is not the worker's fault.
  if (end.exit_code == kWorkerSpoolFailed) lost_reason_ = v1::STATE_REASON_IO_ERROR;
  if (end.exit_code == kWorkerBadLaunch) lost_reason_ = v1::STATE_REASON_WORKER_START_FAILED;
  if (end.exit_code > 0 || (end.signal != 0 && end.signal != SIGKILL && end.signal != SIGTERM)) {
    const std::string line = LastLogLine(folder_.LogPath(index));
    if (!line.empty()) absl::StrAppend(&lost_message_, " The last line of its log: ", line);
    const std::string report = folder_.CrashReportPath(attempt_, index);
    if (end.signal != 0 && access(report.c_str(), F_OK) == 0) {
      absl::StrAppend(&lost_message_, line.empty() || absl::EndsWith(line, ".") ? "" : ".",
                      " Its stack is in ", report, ".");
    }
  }
}

void SupervisedWorker::NoteSilence(absl::Duration limit) {
  if (!lost_message_.empty() && lost_message_ != kEndedUnwatched) return;
  lost_message_ = absl::StrCat("The worker ran but was silent for more than ", absl::FormatDuration(limit),
                               ", so it was killed.");
}

std::string SupervisedWorker::NameOf(int index) const {
  if (workers_ == 1) return "The worker";
  const int ranks = replicas_ / workers_, first = index * ranks;
  return absl::StrCat("Worker ", index, " of ", workers_,
                      ranks == 1 ? absl::StrCat(" (rank ", first, ")")
                                 : absl::StrCat(" (ranks ", first, " to ", first + ranks - 1, ")"));
}

}  // namespace tandem
