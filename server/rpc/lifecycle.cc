#include "server/rpc/lifecycle.h"

#include "engine/base/error_reason.h"

namespace tandem {
namespace {

absl::Status ShuttingDown() {
  return WithReason(absl::UnavailableError("the daemon is shutting down; try again when it runs"),
                    "SHUTTING_DOWN");
}

}  // namespace

absl::Status Lifecycle::CheckServing() const {
  MutexLock lock(&mutex_);
  return stopped_ ? ShuttingDown() : absl::OkStatus();
}

absl::Status Lifecycle::CheckAcceptsJobs() const {
  MutexLock lock(&mutex_);
  return stopped_ || refusals_ > 0 ? ShuttingDown() : absl::OkStatus();
}

void Lifecycle::RefuseJobs() {
  MutexLock lock(&mutex_);
  ++refusals_;
}

void Lifecycle::AcceptJobsAgain() {
  MutexLock lock(&mutex_);
  --refusals_;
}

void Lifecycle::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
}

void Lifecycle::WaitForStop() const {
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&stopped_));
}

}  // namespace tandem
