#ifndef TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
#define TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// Goes through a snapshot's queue, the next to start first: by priority, then users with fewer
// device-seconds, then age. What a user's jobs before a job are expected to take counts as that user's, so
// that users take turns; so does what is left of those that run.
//
// The first job of a group counts with the priority that its wait has raised it to: see JobQueue.
//
// A step costs the logarithm of how many groups of jobs there are. The snapshot outlives this.
class QueueOrder {
 public:
  explicit QueueOrder(const Snapshot& snapshot);

  // Null behind the last.
  const WaitingJob* Next();
  // Of the job that Next gave last: its priority with what its wait has raised it by.
  int level() const { return level_; }

 private:
  // A group's next job.
  struct Head {
    int level = 0;
    // The user's when this was put in place; it may have grown since.
    double device_seconds = 0;
    const JobQueue::Group* group = nullptr;
    JobQueue::Jobs::const_iterator job;
    double* user_seconds = nullptr;
  };
  // Whether `a` goes behind `b`.
  static bool IsBehind(const Head& a, const Head& b);
  void Push(Head head);

  // Stable addresses: filled before the first Next.
  absl::flat_hash_map<std::string, double> seconds_;
  std::vector<Head> heads_;
  int level_ = 0;
};

// Device-seconds that a job is expected to take. Where nobody knows how long it takes, an hour is assumed.
double ExpectedDeviceSeconds(int devices, double share, absl::Duration run_time);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
