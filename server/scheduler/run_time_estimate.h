#ifndef TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_
#define TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_

#include <map>

#include "absl/time/time.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns how long the job may still hold devices by its time limit; infinite without a limit, never
// negative. `held` is the time so far in the current attempt; zero if the job waits.
absl::Duration LongestRemaining(const v1::Job& job, absl::Duration held);

// Estimates how long jobs hold their devices. Uses a job's measured speed. If the job has none yet, uses its
// planned operations and the speed of a device of the kind, learned from earlier jobs. The estimate is a
// mean: about half of all jobs take longer, some many times as long. Not thread-safe.
class RunTimeEstimate {
 public:
  // Returns how long the job probably still holds devices; `held` as above. Not negative and at most
  // LongestRemaining; infinite if nothing is known.
  absl::Duration Remaining(const v1::Job& job, absl::Duration held) const;

  // Learns from a job that ends or pauses after `held`.
  void Learn(const v1::Job& job, absl::Duration held);

 private:
  double OperationsPerSecond(v1::DeviceKind kind) const;

  // The speed of one device, by kind.
  std::map<v1::DeviceKind, double> learned_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_
