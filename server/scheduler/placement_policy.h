#ifndef TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_
#define TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduler/job_queue.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A device, reduced to the fields for placing.
struct DeviceSlot {
  // For example "devices/cpu:0".
  std::string name;
  v1::DeviceKind kind = v1::DEVICE_KIND_UNSPECIFIED;
  int64_t memory_bytes = 0;
  v1::DeviceState state = v1::DEVICE_STATE_ACTIVE;
};

// A job that holds devices.
struct HoldingJob {
  std::string id;
  std::string user;
  // Its sweep, "sweeps/<id>"; empty if none.
  std::string sweep;
  int priority = 0;
  bool preemptible = false;
  // True if it was told to stop, or has ended while its process still exits.
  bool ending = false;
  // Positions in Snapshot::devices, without repetition.
  std::vector<int> devices;
  // The share and memory of each device.
  double share = 1;
  int64_t memory_bytes = 0;
  absl::Time lease_time;
  // The estimated end; InfiniteFuture if unknown. No start depends on it.
  absl::Time expected_end = absl::InfiniteFuture();
  // The end by its time limit; InfiniteFuture without a limit.
  absl::Time latest_end = absl::InfiniteFuture();
};

// A user's usage and quota.
struct UserShare {
  // The decayed device-seconds so far, current leases included.
  double device_seconds = 0;
  // The most devices at a time. 0: no limit.
  int max_devices = 0;
};

// The whole input of a decision.
struct Snapshot {
  absl::Time now;
  // For JobQueue. Does not jump if the clock is set.
  absl::Time monotonic_now;
  std::vector<DeviceSlot> devices;
  std::vector<HoldingJob> holding;
  // Users that are missing have used nothing and have no quota.
  absl::flat_hash_map<std::string, UserShare> users;
  // Not owned. Must not change while the snapshot is in use.
  const JobQueue* queue = nullptr;
};

// A job and its gang's devices, without repetition.
struct Placement {
  std::string job_id;
  std::vector<std::string> devices;
  // The argument of JobQueue::Start.
  bool was_longest = false;
};

// A waiting job with reserved devices.
struct Reservation {
  std::string job_id;
  // The latest start, by the time limits of the jobs on its devices. InfiniteFuture if one of these jobs has
  // no limit.
  absl::Time start;
};

// The result of a decision.
struct Decision {
  // The jobs to start, in order. Their devices have room for all of them together.
  std::vector<Placement> placements;
  // The ids of jobs that must give up their devices.
  std::vector<std::string> preemptions;
  // The jobs that no started job may delay, in order. Empty if no device has room: then nothing could start.
  std::vector<Reservation> reservations;
  // The argument of JobQueue::NoteWaiting.
  std::map<JobQueue::GroupKey, absl::Time> waiting;
};

// Describes a waiting job for people.
struct Explanation {
  std::string job_id;
  v1::Waiting waiting;
  // The levels that its wait raises it above its priority.
  int raised_by = 0;
  // True if Decide would start it, or preempt other jobs for it.
  bool is_to_act = false;
};

// Decides which jobs start on which devices. Pure: no state, no clock, no side effect. Thread-safe.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual Decision Decide(const Snapshot& snapshot) const = 0;
  // Explains why each job waits and when it may start, in the expected order of their starts.
  virtual std::vector<Explanation> Explain(const Snapshot& snapshot) const = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_
