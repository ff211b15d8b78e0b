#ifndef TANDEM_SERVER_RPC_JOB_DRAIN_H_
#define TANDEM_SERVER_RPC_JOB_DRAIN_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"

namespace tandem {

// Cancels every job that has not ended, and reports when all have ended: for a shutdown that also ends the
// jobs. Thread-safe. Add it to JobMachine as an observer before anything else.
class JobDrain : public JobObserver {
 public:
  // Gets the number of cancelled jobs, or the reason why the drain stopped.
  using Done = absl::AnyInvocable<void(absl::StatusOr<int>)>;

  // `jobs` must outlive the drain.
  explicit JobDrain(JobMachine* jobs) : jobs_(jobs) {}

  // Cancels all present jobs, and all jobs that are still accepted. Calls `done` once when none is left. May
  // be called again meanwhile. If the jobs cannot be read, `done` gets the error and nothing is cancelled. If
  // the store cannot cancel a job, all waiting `done`s get its error, and later jobs are not cancelled.
  void CancelAll(Done done);

  // Calls all waiting and later `done`s with this error.
  void Abort(const absl::Status& status);

  // Returns true if CancelAll is complete.
  bool is_drained() const {
    MutexLock lock(&mutex_);
    return draining_ && looking_ == 0 && pending_.empty();
  }

  void OnMoved(const v1::Job& job) override;

 private:
  // Asks for the end of a job in pending_.
  void CancelJob(const std::string& id);
  // A job cannot be cancelled. Ends the drain with its error.
  void Fail(const std::string& id, const absl::Status& status);
  void Forget(const std::string& id, bool cancelled);
  // Returns the callbacks to call now, without the lock.
  std::vector<Done> TakeIfDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  JobMachine* const jobs_;
  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // The number of CancelAll calls that are still reading the jobs.
  int looking_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> pending_ ABSL_GUARDED_BY(mutex_);
  int cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_JOB_DRAIN_H_
