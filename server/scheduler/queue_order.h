#ifndef TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
#define TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// Goes through a snapshot's queue, the next to start first: by priority, then users with fewer
// device-seconds, then age. What a user's jobs before a job are expected to take counts as that user's, so
// that users take turns; so does what is left of those that run.
//
// The job of a group that has waited longest of those that could run counts with the priority that its wait
// has raised it to: see JobQueue.
//
// A step costs the logarithm of how many groups of jobs there are. The snapshot and `can_run`, which says
// whether a job could start if devices were free, outlive this.
class QueueOrder {
 public:
  QueueOrder(const Snapshot& snapshot, absl::FunctionRef<bool(const WaitingJob&)> can_run);

  // Null behind the last.
  const WaitingJob* Next();
  // Of the job that Next gave last: its priority with what its wait has raised it by.
  int level() const { return last_.level; }

  // What the job that Next gave last is expected to take counts as its user's: it is to start before those
  // that follow. Not for a job that could not run.
  void Charge();
  // Charge for a job that starts. Whether it had waited longest, of those of its group that could run and
  // were not started before.
  bool Start();

 private:
  struct GroupState {
    const JobQueue::Group* group = nullptr;
    // The one that is raised, if any is.
    JobQueue::Jobs::const_iterator raised;
    // The one that has waited longest of those that were not started.
    JobQueue::Jobs::const_iterator longest;
    double* user_seconds = nullptr;
  };
  // A group's next job, or its raised one.
  struct Head {
    int level = 0;
    // The user's when this was put in place; it may have grown since.
    double device_seconds = 0;
    GroupState* state = nullptr;
    JobQueue::Jobs::const_iterator job;
    bool is_raised = false;
  };
  // Whether `a` goes behind `b`.
  static bool IsBehind(const Head& a, const Head& b);
  // Moves on where the job is the raised one; whether there is any.
  static bool SkipRaised(Head* head);
  void Push(Head head);

  const Snapshot& snapshot_;
  const absl::FunctionRef<bool(const WaitingJob&)> can_run_;
  // Stable addresses: filled before the first Next.
  absl::flat_hash_map<std::string, double> seconds_;
  std::vector<GroupState> states_;
  std::vector<Head> heads_;
  absl::flat_hash_set<const WaitingJob*> started_;
  Head last_;
};

// Device-seconds that a job is expected to take. Where nobody knows how long it takes, an hour is assumed.
double ExpectedDeviceSeconds(int devices, double share, absl::Duration run_time);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
