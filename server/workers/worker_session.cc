#include "server/workers/worker_session.h"
#include "third_party/spdlog/log.h"

#include <utility>

namespace tandem {
namespace {

using internal::v1::ConnectRequest;

// The most events and bytes that wait for the batch in progress: enough for a full group commit, and a bound
// on a flooding worker.
constexpr size_t kMaxPendingEvents = 4096;
constexpr int64_t kMaxPendingBytes = 4 << 20;

}  // namespace

std::shared_ptr<WorkerSession> WorkerSession::Start(WorkerSessionHost* host, JobMachine* jobs,
                                                    grpc::CallbackServerContext* context,
                                                    absl::Duration hello_limit) {
  std::shared_ptr<WorkerSession> session(new WorkerSession(host, jobs, context));
  // The wall clock may jump. The timer does not keep the session alive.
  const gpr_timespec limit =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_millis(absl::ToInt64Milliseconds(hello_limit), GPR_TIMESPAN));
  session->hello_timer_.Set(limit, [weak = std::weak_ptr(session)](bool is_over) {
    if (!is_over) return;
    if (const std::shared_ptr<WorkerSession> live = weak.lock(); live != nullptr) live->OnHelloLimit();
  });
  MutexLock lock(&session->mutex_);
  session->self_ = session;
  session->Read();
  return session;
}

void WorkerSession::OnHelloLimit() {
  MutexLock lock(&mutex_);
  if (admitted_ || self_ == nullptr) return;
  closing_ = true;
  // A peer that reads nothing would never let Finish end. TryCancel's effects come on other threads.
  context_->TryCancel();
}

void WorkerSession::Cancel() {
  MutexLock lock(&mutex_);
  cancel_ = true;
  Write();
}

void WorkerSession::Pause() {
  MutexLock lock(&mutex_);
  pause_ = true;
  Write();
}

void WorkerSession::Dismiss(absl::string_view message) {
  MutexLock lock(&mutex_);
  DismissLocked(message);
}

void WorkerSession::DismissLocked(absl::string_view message) {
  dismiss_ = std::string(message);
  closing_ = true;
  Write();
}

void WorkerSession::Close() {
  MutexLock lock(&mutex_);
  closing_ = true;
  Write();
}

void WorkerSession::Read() {
  if (reading_ || closing_ || greeting_) return;
  if (pending_.size() >= kMaxPendingEvents || pending_bytes_ >= kMaxPendingBytes) return;
  reading_ = true;
  StartRead(&request_);
}

void WorkerSession::OnReadDone(bool ok) {
  if (ok && request_.has_hello()) return OnHello();
  {
    MutexLock lock(&mutex_);
    reading_ = false;
    if (!ok) {
      closing_ = true;
      return Write();
    }
    if (closing_) return;
    if (request_.events().empty() || attempt_ == 0) {
      spdlog::error("worker sent an unexpected message job={} attempt={}", job_id_, attempt_);
      return DismissLocked("cannot read the worker's stream: it must be one hello and then events");
    }
    pending_bytes_ += request_.ByteSizeLong();
    for (internal::v1::WorkerEvent& event : *request_.mutable_events()) pending_.push_back(std::move(event));
    Read();
  }
  Apply();
}

void WorkerSession::OnHello() {
  std::shared_ptr<WorkerSession> self;
  {
    MutexLock lock(&mutex_);
    reading_ = false;
    if (closing_) return;
    if (attempt_ != 0) return DismissLocked("cannot read the worker's stream: it has a second hello");
    job_id_ = request_.hello().job_id();
    attempt_ = request_.hello().attempt();
    greeting_ = true;
    self = self_;
  }
  // Unlocked, because the host may call Cancel.
  if (const absl::Status admitted = host_->Admit(request_.hello(), self); !admitted.ok()) {
    return Dismiss(admitted.message());
  }
  {
    MutexLock lock(&mutex_);
    admitted_ = true;
  }
  // Unlocked, because a closed store answers at once.
  jobs_->AskWorkerPosition(
      request_.hello().job_id(), request_.hello().attempt(),
      [self](absl::StatusOr<JobMachine::WorkerPosition> position) { self->OnApplied(position); });
}

void WorkerSession::Apply() {
  std::vector<internal::v1::WorkerEvent> events;
  std::shared_ptr<WorkerSession> self;
  std::string job_id;
  int32_t attempt;
  {
    MutexLock lock(&mutex_);
    if (applying_ || closing_ || pending_.empty()) return;
    applying_ = true;
    pending_bytes_ = 0;
    events = std::exchange(pending_, {});
    self = self_;
    job_id = job_id_;
    attempt = attempt_;
  }
  host_->BeforeApply(job_id, attempt, events);
  // Unlocked, because a closed store answers at once.
  jobs_->ApplyWorkerEvents(
      job_id, attempt, std::move(events),
      [self](absl::StatusOr<JobMachine::WorkerPosition> position) { self->OnApplied(position); });
}

void WorkerSession::OnApplied(const absl::StatusOr<JobMachine::WorkerPosition>& position) {
  {
    MutexLock lock(&mutex_);
    applying_ = false;
    if (closing_) return;
    if (!position.ok()) {
      switch (position.status().code()) {
        case absl::StatusCode::kNotFound:
        case absl::StatusCode::kFailedPrecondition:
          return DismissLocked(position.status().message());
        case absl::StatusCode::kInvalidArgument:
        case absl::StatusCode::kOutOfRange:
          // They would be refused for ever, and the job would never end.
          spdlog::error("dismissed a worker because of its events job={} attempt={}: {}", job_id_, attempt_,
                        position.status().ToString());
          return DismissLocked(position.status().message());
        default:
          // Nothing was applied. The worker reconnects and sends the events again.
          spdlog::error("cannot take a worker's events job={} attempt={}: {}", job_id_, attempt_,
                        position.status().ToString());
          closing_ = true;
          return Write();
      }
    }
    greeting_ = false;
    acknowledge_ = position->worker_sequence;
    if (position->state == v1::JOB_STATE_CANCELLING) cancel_ = true;
    if (position->state == v1::JOB_STATE_PAUSING || position->state == v1::JOB_STATE_PREEMPTING)
      pause_ = true;
    Write();
    Read();
  }
  Apply();
}

void WorkerSession::Write() {
  if (writing_ || finished_) return;
  response_.Clear();
  if (dismiss_.has_value()) {
    response_.mutable_dismissal()->set_message(*std::exchange(dismiss_, std::nullopt));
  } else if (closing_) {
    finished_ = true;
    return Finish(grpc::Status::OK);
  } else if (acknowledge_.has_value()) {
    response_.mutable_acknowledgement()->set_worker_sequence(*std::exchange(acknowledge_, std::nullopt));
  } else if (cancel_ && !cancel_sent_ && !greeting_) {
    cancel_sent_ = true;
    response_.mutable_cancel();
  } else if (pause_ && !pause_sent_ && !greeting_) {
    pause_sent_ = true;
    response_.mutable_pause();
  } else {
    return;
  }
  writing_ = true;
  StartWrite(&response_);
}

void WorkerSession::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) closing_ = true;
  Write();
}

void WorkerSession::OnCancel() {
  MutexLock lock(&mutex_);
  closing_ = true;
  Write();
}

void WorkerSession::OnDone() {
  std::shared_ptr<WorkerSession> self;
  std::string job_id;
  {
    MutexLock lock(&mutex_);
    self = std::move(self_);
    job_id = job_id_;
  }
  if (!job_id.empty()) host_->Leave(job_id, this);
}

}  // namespace tandem
