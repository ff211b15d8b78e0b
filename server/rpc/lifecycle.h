#ifndef TANDEM_SERVER_RPC_LIFECYCLE_H_
#define TANDEM_SERVER_RPC_LIFECYCLE_H_

#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tandem {

// How far the daemon is on its way out. Thread-safe.
class Lifecycle {
 public:
  // OK while calls are answered; UNAVAILABLE once the daemon stops.
  absl::Status CheckServing() const;
  // OK while new jobs are taken; UNAVAILABLE once they are refused.
  absl::Status CheckAcceptsJobs() const;

  // Refuses new jobs; all else goes on.
  void RefuseJobs();
  // Takes one RefuseJobs back: new jobs are taken again when all are.
  void AcceptJobsAgain();
  // Refuses everything, and wakes WaitForStop.
  void Stop();
  // Returns once Stop was called.
  void WaitForStop() const;

 private:
  mutable Mutex mutex_;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_LIFECYCLE_H_
