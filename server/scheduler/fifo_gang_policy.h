#ifndef TANDEM_SERVER_SCHEDULER_FIFO_GANG_POLICY_H_
#define TANDEM_SERVER_SCHEDULER_FIFO_GANG_POLICY_H_

#include "server/scheduler/placement_policy.h"

namespace tandem {

// First come, first served: a job starts when all of its devices are free and no job before it waits for
// devices. A job that asks for more than the machine has does not hold up the others.
class FifoGangPolicy : public PlacementPolicy {
 public:
  Decision Decide(const Snapshot& snapshot) const override;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_FIFO_GANG_POLICY_H_
