#ifndef TANDEM_TESTS_SCHEDULER_SIMULATION_FIFO_POLICY_H_
#define TANDEM_TESTS_SCHEDULER_SIMULATION_FIFO_POLICY_H_

#include <vector>

#include "server/scheduler/placement_policy.h"

namespace tandem {

// First come, first served, as a baseline for other policies. A job that needs more devices than are free
// holds up all jobs behind it. For whole devices of a single kind.
class FifoPolicy : public PlacementPolicy {
 public:
  Decision Decide(const Snapshot& snapshot) const override;
  std::vector<Explanation> Explain(const Snapshot&) const override { return {}; }
};

}  // namespace tandem

#endif  // TANDEM_TESTS_SCHEDULER_SIMULATION_FIFO_POLICY_H_
