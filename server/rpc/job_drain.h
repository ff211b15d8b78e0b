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

// Cancels every job that has not ended, and tells when all have: for a shutdown that takes the jobs along.
// Thread-safe. Add it to the JobMachine as an observer before anything else happens.
class JobDrain : public JobObserver {
 public:
  // How many jobs it cancelled, or why it gave up.
  using Done = absl::AnyInvocable<void(absl::StatusOr<int>)>;

  // `jobs` must outlive the drain.
  explicit JobDrain(JobMachine* jobs) : jobs_(jobs) {}

  // From now on cancels those that are there and any that are still accepted; `done` is called once, when
  // none is left. May be called again meanwhile. Where the jobs cannot be read, `done` gets the error,
  // nothing is cancelled, and it is as if this had not been called.
  void CancelAll(Done done);

  // Calls what waits with this error, and everything later too.
  void Abort(const absl::Status& status);

  // Whether CancelAll came to its end.
  bool is_drained() const {
    MutexLock lock(&mutex_);
    return draining_ && looking_ == 0 && pending_.empty();
  }

  void OnQueued(const v1::Job& job) override;
  void OnTerminal(const v1::Job& job) override;

 private:
  void CancelJob(const std::string& id);
  void Forget(const std::string& id, bool cancelled);
  // What is to be called now, without the lock.
  std::vector<Done> TakeIfDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  JobMachine* const jobs_;
  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // Calls whose look at the store is not through.
  int looking_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> pending_ ABSL_GUARDED_BY(mutex_);
  int cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_JOB_DRAIN_H_
