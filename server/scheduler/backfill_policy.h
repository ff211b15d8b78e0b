#ifndef TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_
#define TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_

#include <vector>

#include "server/scheduler/placement_policy.h"

namespace tandem {

// Jobs start in the order of QueueOrder, all of a gang's devices at once. A job with too few free devices
// gets a reservation: the devices that time limits free for it first, from then on. A job behind it may start
// before it only if its time limit ends it before any reservation on its devices begins (EASY backfill:
// Lifka, "The ANL/IBM SP Scheduling System", 1995, with more than one reservation). Estimates of run times
// decide nothing. So the first job that waits starts when the jobs end that held its devices when it became
// first; no job without a time limit starts on these devices before it.
//
// The first `reservations` of the jobs that must wait get a reservation. Behind them a job starts only if it
// passes none of a higher level without a reservation, and only the next `most_backfilled` are looked at. A
// job may also have preemptible jobs of lower priority give up their devices.
//
// A job over its sweep's limit waits, and hinders no other. A job over its user's quota keeps what is left
// of the quota from the user's jobs behind it, and hinders no other user.
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
