#ifndef TANDEM_SERVER_RPC_LIFECYCLE_H_
#define TANDEM_SERVER_RPC_LIFECYCLE_H_

#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tandem {

// The daemon's progress towards its stop. Thread-safe.
class Lifecycle {
 public:
  // OK while calls are answered; UNAVAILABLE after Stop.
  absl::Status CheckServing() const;
  // OK while new jobs are accepted; UNAVAILABLE otherwise.
  absl::Status CheckAcceptsJobs() const;

  // Refuses new jobs; everything else continues.
  void RefuseJobs();
  // Undoes one RefuseJobs. New jobs are accepted after all are undone.
  void AcceptJobsAgain();
  // Refuses everything, and wakes WaitForStop.
  void Stop();
  // Blocks until Stop is called.
  void WaitForStop() const;

 private:
  mutable Mutex mutex_;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_LIFECYCLE_H_
