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

// Tells if a waiting job could start if devices were free.
enum class Readiness {
  kReady,
  // Its user's quota has no room now. The user's later jobs also wait.
  kHeldByQuota,
  // Something else holds it back. Later jobs may start first.
  kHeldBack,
};

// Iterates over a snapshot's queue, next job first: by priority, then by the user's device-seconds, then by
// age. The expected device-seconds of a user's earlier and running jobs count as the user's, so that users
// take turns.
//
// Of a group's ready jobs, the job that has waited longest counts with the priority to which the group's wait
// raises it (see JobQueue).
//
// A step takes logarithmic time in the number of groups. The snapshot and `readiness` must outlive this
// object.
class QueueOrder {
 public:
  using ReadinessOf = absl::FunctionRef<Readiness(const WaitingJob&)>;
  QueueOrder(const Snapshot& snapshot, ReadinessOf readiness);

  // Returns the next job; null at the end.
  const WaitingJob* Next();
  // Returns the raised priority of Next's last job.
  int level() const { return last_.level; }

  // Charges the expected device-seconds of Next's last job to its user, because the job starts before the
  // following jobs. Only for a ready job.
  void Charge();
  // Like Charge, for a job that starts. Returns true if it had waited longest of its group's ready jobs.
  bool Start();
  // Returns the groups with a ready job that was not started, and the start of the longest such job's wait.
  std::map<JobQueue::GroupKey, absl::Time> Waiting() const;

 private:
  using JobIterator = JobQueue::Jobs::const_iterator;
  struct GroupState {
    const JobQueue::GroupKey* key = nullptr;
    const JobQueue::Group* group = nullptr;
    // The longest-waiting job that was ready at construction; the end of the group's jobs if none.
    JobIterator longest;
    bool is_raised = false;
    double* user_seconds = nullptr;
  };
  // A group's next job, or its raised job.
  struct Head {
    int level = 0;
    // The user's device-seconds when the head was pushed; they may have grown since.
    double device_seconds = 0;
    GroupState* state = nullptr;
    JobIterator job;
    bool is_raised = false;
  };
  // Returns true if `a` comes after `b`.
  static bool IsBehind(const Head& a, const Head& b);
  // Skips the raised job. Returns false at the end of the group's jobs.
  static bool SkipRaised(Head* head);
  void Push(Head head);
  // Returns the longest-waiting job that is ready and was not started. Returns the end of the group's jobs if
  // none, or if a job that has waited longer is held by its user's quota.
  JobIterator FindLongest(const JobQueue::Group& group) const;

  const ReadinessOf readiness_;
  // Filled before the first Next, so that addresses stay valid.
  absl::flat_hash_map<std::string, double> seconds_;
  std::vector<GroupState> states_;
  std::vector<Head> heads_;
  absl::flat_hash_set<const WaitingJob*> started_;
  Head last_;
};

// Returns the device-seconds that a job is expected to use. An unknown run time counts as an hour.
double ExpectedDeviceSeconds(int devices, double share, absl::Duration run_time);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_QUEUE_ORDER_H_
