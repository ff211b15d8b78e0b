#ifndef TANDEM_SERVER_JOBS_LEASE_TIMES_H_
#define TANDEM_SERVER_JOBS_LEASE_TIMES_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "google/protobuf/timestamp.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Measures how long jobs have held their devices, by Clock::Elapsed(), so that setting the clock does not
// change a job's run time. For leases of an earlier daemon, Begin trusts the wall clock once. Thread-safe.
class LeaseTimes {
 public:
  // `clock` must outlive this object.
  explicit LeaseTimes(const Clock* clock) : clock_(clock) {}

  // Starts the job's lease at its lease_time. For a new lease that is now. For a lease of an earlier daemon,
  // the wall clock gives the time since.
  void Begin(const v1::Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the time since the lease's start. `time` is the wall clock's time now. Never negative.
  absl::Duration Held(const v1::Job& job, const google::protobuf::Timestamp& time) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the job's lease. A later lease of the job stays.
  void Forget(const v1::Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job no longer exists.
  void Remove(const std::string& job_name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Lease {
    google::protobuf::Timestamp time;
    absl::Duration begun;
  };

  const Clock* const clock_;
  mutable Mutex mutex_;
  // Keyed by the job's name. If a lease's transaction failed, its time differs from the job's.
  absl::flat_hash_map<std::string, Lease> leases_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_LEASE_TIMES_H_
