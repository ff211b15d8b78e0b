#ifndef TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_
#define TANDEM_SERVER_SCHEDULER_BACKFILL_POLICY_H_

#include <vector>

#include "server/scheduler/placement_policy.h"

namespace tandem {

// Jobs start in the order of QueueOrder, all of a gang's devices at once. One for which too few devices are
// free gets a reservation: the devices that are expected to be free for it first, from then on. Those behind
// it may start before it where they are expected to end before any reservation on their devices begins (EASY
// backfill: Lifka, "The ANL/IBM SP Scheduling System", 1995, with more than one reservation).
//
// The first `reservations` of the jobs that must wait get one. Behind them a job starts only if none of a
// higher level is passed over without one, and only the next `most_backfilled` are looked at. A job may also
// have preemptible jobs of lower priority give up their devices. Those over their user's quota or their
// sweep's limit wait, and are no hindrance.
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
