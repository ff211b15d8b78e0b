#include "server/rpc/job_drain.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "server/store/records.h"

namespace tandem {

void JobDrain::CancelAll(Done done) {
  absl::Status aborted;
  {
    MutexLock lock(&mutex_);
    aborted = aborted_;
    if (aborted.ok()) {
      draining_ = true;
      ++looking_;
    }
  }
  if (!aborted.ok()) return done(aborted);
  // If a job ends between the look and its cancellation, the cancellation's answer removes it.
  const absl::StatusOr<std::vector<v1::Job>> jobs = jobs_->NonTerminalJobs();
  if (!jobs.ok()) {
    {
      MutexLock lock(&mutex_);
      // If another call waits, the drain continues.
      if (--looking_ == 0 && waiting_.empty()) draining_ = false;
    }
    done(absl::Status(
        jobs.status().code(),
        absl::StrCat("cannot shut down: the jobs to cancel cannot be read: ", jobs.status().message())));
    return;
  }
  std::vector<std::string> ids;
  std::vector<Done> ready;
  int cancelled;
  {
    MutexLock lock(&mutex_);
    --looking_;
    cancelled = cancelled_;
    aborted = aborted_;
    if (aborted.ok()) {
      waiting_.push_back(std::move(done));
      for (const v1::Job& job : *jobs) {
        std::string id = JobId(job.name());
        if (pending_.insert(id).second) ids.push_back(std::move(id));
      }
      ready = TakeIfDrained();
    }
  }
  if (!aborted.ok()) return done(aborted);
  for (const std::string& id : ids) CancelJob(id);
  for (Done& call : ready) call(cancelled);
}

void JobDrain::Abort(const absl::Status& status) {
  std::vector<Done> waiting;
  {
    MutexLock lock(&mutex_);
    aborted_ = status;
    waiting.swap(waiting_);
  }
  for (Done& call : waiting) call(status);
}

void JobDrain::OnMoved(const v1::Job& job) {
  const std::string id = JobId(job.name());
  if (IsTerminal(job.state())) return Forget(id, job.state() == v1::JOB_STATE_CANCELLED);
  if (job.state() != v1::JOB_STATE_QUEUED) return;
  {
    MutexLock lock(&mutex_);
    if (!draining_ || !pending_.insert(id).second) return;
  }
  CancelJob(id);
}

void JobDrain::CancelJob(const std::string& id) {
  jobs_->Cancel(id, v1::STATE_REASON_SHUTDOWN, [this, id](absl::StatusOr<v1::Job> job) {
    const absl::Status& status = job.status();
    if (!status.ok() && !absl::IsNotFound(status) && !absl::IsFailedPrecondition(status))
      return Fail(id, status);
    // The job ended by itself, was deleted, or was cancelled by somebody else before it was pending.
    // OnMoved already removed the jobs that this call ended.
    if (!status.ok() || IsTerminal(job->state())) Forget(id, false);
  });
}

void JobDrain::Fail(const std::string& id, const absl::Status& status) {
  std::vector<Done> failed;
  {
    MutexLock lock(&mutex_);
    pending_.erase(id);
    failed.swap(waiting_);
    // A call that still reads the jobs asks for this job again.
    if (looking_ == 0) draining_ = false;
  }
  for (Done& call : failed) {
    call(absl::Status(status.code(), absl::StrCat("cannot shut down: ", JobName(id),
                                                  " cannot be cancelled: ", status.message())));
  }
}

void JobDrain::Forget(const std::string& id, bool cancelled) {
  std::vector<Done> ready;
  int count;
  {
    MutexLock lock(&mutex_);
    if (pending_.erase(id) == 0) return;
    if (cancelled) ++cancelled_;
    count = cancelled_;
    ready = TakeIfDrained();
  }
  for (Done& call : ready) call(count);
}

std::vector<JobDrain::Done> JobDrain::TakeIfDrained() {
  std::vector<Done> ready;
  if (draining_ && looking_ == 0 && pending_.empty()) ready.swap(waiting_);
  return ready;
}

}  // namespace tandem
