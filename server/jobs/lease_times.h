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

// Whether a job in this state has a worker, and holds devices for it.
bool IsHolding(v1::JobState state);

// For how long jobs have had their devices, by Clock::Elapsed(): what the machine's clock is set by meanwhile
// is no time that a job has run. Of leases that an earlier daemon gave it takes the clock's word once, when
// it is told of them. Thread-safe.
class LeaseTimes {
 public:
  // `clock` outlives this.
  explicit LeaseTimes(const Clock* clock) : clock_(clock) {}

  // `job` has had its devices since its lease_time: since now, or, where an earlier daemon gave them, for as
  // long as the clock says.
  void Begin(const v1::Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long ago that was; by the clock it is `time`. Not below 0.
  absl::Duration Held(const v1::Job& job, const google::protobuf::Timestamp& time) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // It has them no more. What is known of a later lease stays.
  void Forget(const v1::Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // There is no such job any more.
  void Remove(const std::string& job_name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Lease {
    google::protobuf::Timestamp time;
    absl::Duration begun;
  };

  const Clock* const clock_;
  mutable Mutex mutex_;
  // By the jobs' names. One whose transaction failed is of another time than the job's.
  absl::flat_hash_map<std::string, Lease> leases_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_LEASE_TIMES_H_
