#ifndef TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
#define TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// Whether a waiting job could start if devices were free.
enum class Readiness {
  kReady,
  // Its user's quota has no room for it now: the user's jobs behind it wait, too.
  kHeldByQuota,
  // Something else holds it back; others may go before it.
  kHeldBack,
};

// Goes through a snapshot's queue, the next to start first: by priority, then users with fewer
// device-seconds, then age. What a user's jobs before a job are expected to take counts as that user's, so
// that users take turns; so does what is left of those that run.
//
// Of a group's jobs that are ready, the job that has waited longest counts with the priority that the group's
// wait raises it to: see JobQueue.
//
// A step costs the logarithm of how many groups of jobs there are. The snapshot and `readiness` outlive this.
class QueueOrder {
 public:
  using ReadinessOf = absl::FunctionRef<Readiness(const WaitingJob&)>;
  QueueOrder(const Snapshot& snapshot, ReadinessOf readiness);

  // Null behind the last.
  const WaitingJob* Next();
  // Of the job that Next gave last: its priority with what its wait has raised it by.
  int level() const { return last_.level; }

  // What the job that Next gave last is expected to take counts as its user's: it is to start before those
  // that follow. Not for a job that is not ready.
  void Charge();
  // Charge for a job that starts. Returns whether, of its group's jobs that were ready, it had waited
  // longest.
  bool Start();
  // The groups with a job that is ready and was not started, and since when the longest of them waits.
  std::map<JobQueue::GroupKey, absl::Time> Waiting() const;

 private:
  using JobIterator = JobQueue::Jobs::const_iterator;
  struct GroupState {
    const JobQueue::GroupKey* key = nullptr;
    const JobQueue::Group* group = nullptr;
    // Of the jobs that were ready when this was made, the one that has waited longest; the jobs' end if none
    // was.
    JobIterator longest;
    bool is_raised = false;
    double* user_seconds = nullptr;
  };
  // A group's next job, or its raised one.
  struct Head {
    int level = 0;
    // The user's when this was put in place; it may have grown since.
    double device_seconds = 0;
    GroupState* state = nullptr;
    JobIterator job;
    bool is_raised = false;
  };
  // Whether `a` goes behind `b`.
  static bool IsBehind(const Head& a, const Head& b);
  // Moves on where the job is the raised one; whether there is any.
  static bool SkipRaised(Head* head);
  void Push(Head head);
  // Of the jobs that are ready and were not started, the one that has waited longest; the jobs' end if there
  // is none, or one that has waited longer waits for its user's quota.
  JobIterator FindLongest(const JobQueue::Group& group) const;

  const ReadinessOf readiness_;
  // Stable addresses: filled before the first Next.
  absl::flat_hash_map<std::string, double> seconds_;
  std::vector<GroupState> states_;
  std::vector<Head> heads_;
  absl::flat_hash_set<const WaitingJob*> started_;
  Head last_;
};

// Device-seconds that a job is expected to take. If nobody knows how long it takes, an hour is assumed.
double ExpectedDeviceSeconds(int devices, double share, absl::Duration run_time);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
