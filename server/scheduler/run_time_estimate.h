#ifndef TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_
#define TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_

#include <map>

#include "absl/time/time.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// How much longer the job may hold devices by its time limit; infinite without a limit, not negative. `held`
// is for how long it has held them in its present attempt; zero while it waits.
absl::Duration LongestRemaining(const v1::Job& job, absl::Duration held);

// How long jobs probably hold their devices. Follows from a job's measured speed; before it has one, from its
// planned operations and the operations that one device of the kind does in a second, learned from the jobs
// before. A mean: half of all jobs take longer, some many times as long. Not thread-safe.
class RunTimeEstimate {
 public:
  // How much longer the job probably holds devices; `held` as above. Not negative, at most LongestRemaining;
  // infinite if nothing is known of the job.
  absl::Duration Remaining(const v1::Job& job, absl::Duration held) const;

  // Learns from a job that ends, or pauses, after `held`.
  void Learn(const v1::Job& job, absl::Duration held);

 private:
  double OperationsPerSecond(v1::DeviceKind kind) const;

  // Of one device, by kind.
  std::map<v1::DeviceKind, double> learned_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_
