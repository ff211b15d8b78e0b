#ifndef TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_
#define TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A job that waits, as far as its placement goes.
struct WaitingJob {
  std::string id;
  // At least 1.
  int replicas = 1;
  // UNSPECIFIED: GPUs where the machine has enough of them, else CPU devices.
  v1::DeviceKind device_kind = v1::DEVICE_KIND_UNSPECIFIED;
  // Of one replica.
  int64_t memory_bytes = 0;
};

// All that a decision depends on.
struct Snapshot {
  // All devices; `job` is empty where one is free.
  std::vector<v1::Device> devices;
  // In the order of their arrival.
  std::vector<WaitingJob> queue;
};

// A job and the devices of its replicas, in the order of ranks.
struct Placement {
  std::string job_id;
  std::vector<std::string> devices;
};

// What to do.
struct Decision {
  // Jobs to start, in order; their devices are free in the snapshot and no two overlap.
  std::vector<Placement> placements;
  // Why each of the others waits, by id.
  std::map<std::string, v1::Waiting> waiting;
};

// Decides which jobs start where. Pure: no state, no clock, no side effect; thread-safe.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual Decision Decide(const Snapshot& snapshot) const = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_
