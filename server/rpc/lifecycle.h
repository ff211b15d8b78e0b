#ifndef TANDEM_SERVER_RPC_LIFECYCLE_H_
#define TANDEM_SERVER_RPC_LIFECYCLE_H_

#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tandem {

// How far the daemon is on its way out; it only goes forward. Thread-safe.
class Lifecycle {
 public:
  // OK while calls are answered; UNAVAILABLE once the daemon stops.
  absl::Status CheckServing() const;
  // OK while new jobs are taken; UNAVAILABLE once they are refused.
  absl::Status CheckAcceptsJobs() const;

  // Refuses new jobs; all else goes on.
  void RefuseJobs();
  // Refuses everything, and wakes WaitForStop.
  void Stop();
  // Returns once Stop was called.
  void WaitForStop() const;

 private:
  mutable Mutex mutex_;
  bool refuses_jobs_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_LIFECYCLE_H_
