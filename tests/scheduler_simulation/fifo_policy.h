#ifndef TANDEM_TESTS_SCHEDULER_SIMULATION_FIFO_POLICY_H_
#define TANDEM_TESTS_SCHEDULER_SIMULATION_FIFO_POLICY_H_

#include <vector>

#include "server/scheduler/placement_policy.h"

namespace tandem {

// What others are compared with: first come, first served; a job for which too few devices are free holds up
// all behind it. For whole devices of one kind.
class FifoPolicy : public PlacementPolicy {
 public:
  Decision Decide(const Snapshot& snapshot) const override;
  std::vector<Explanation> Explain(const Snapshot&) const override { return {}; }
};

}  // namespace tandem

#endif  // TANDEM_TESTS_SCHEDULER_SIMULATION_FIFO_POLICY_H_
