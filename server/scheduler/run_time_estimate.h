#ifndef TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_
#define TANDEM_SERVER_SCHEDULER_RUN_TIME_ESTIMATE_H_

#include <map>

#include "absl/time/time.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// How long jobs hold their devices: what is left of the time limit, else what follows from the measured
// speed, else from the planned operations and what one device of the kind does in a second, which is learned
// from the jobs that were. Not thread-safe.
class RunTimeEstimate {
 public:
  // How much longer the job is expected to hold devices. `held` is for how long it has held them in its
  // present attempt; zero where it waits. Not negative; infinite where nothing is known of it.
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
