#ifndef TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_
#define TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_

#include <vector>

#include "server/scheduler/placement_policy.h"

namespace tandem {

// Starts jobs in the order of QueueOrder, each with all devices of its gang at once. If a job has too few
// free devices, it gets a reservation: the devices that time limits free first for the job, from that time
// on. A later job may start earlier only if its time limit ends it before every reservation on its devices
// (EASY backfill: Lifka, "The ANL/IBM SP Scheduling System", 1995, but with several reservations). Estimated
// run times decide nothing. So the first waiting job starts as soon as the jobs end that held its devices
// when it became first. No job without a time limit starts on these devices earlier.
//
// Only the first `reservations` waiting jobs get a reservation. After them, a job may start only if it
// overtakes no job of a higher level without a reservation, and only the next `most_backfilled` jobs are
// considered. A job may also preempt preemptible jobs of lower priority.
//
// A job over its sweep's limit waits and delays no other job. A job over its user's quota reserves the rest
// of the quota before the user's later jobs, and delays no other user.
class BackfillPolicy : public PlacementPolicy {
 public:
  struct Options {
    int reservations = 100;
    int most_backfilled = 1000;
  };

  BackfillPolicy() : BackfillPolicy(Options()) {}
  explicit BackfillPolicy(const Options& options) : options_(options) {}

  Decision Decide(const Snapshot& snapshot) const override;
  std::vector<Explanation> Explain(const Snapshot& snapshot) const override;

 private:
  const Options options_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_
