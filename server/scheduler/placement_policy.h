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

// A device, as far as placing goes.
struct DeviceSlot {
  // "devices/cpu:0".
  std::string name;
  v1::DeviceKind kind = v1::DEVICE_KIND_UNSPECIFIED;
  int64_t memory_bytes = 0;
  v1::DeviceState state = v1::DEVICE_STATE_ACTIVE;
};

// A job that holds devices.
struct HoldingJob {
  std::string id;
  std::string user;
  // "sweeps/<id>"; empty where it is of none.
  std::string sweep;
  int priority = 0;
  bool preemptible = false;
  // It was told to stop, or has ended and its process is about to go.
  bool ending = false;
  // Positions in Snapshot::devices, each once.
  std::vector<int> devices;
  // Of each of them.
  double share = 1;
  int64_t memory_bytes = 0;
  absl::Time lease_time;
  // When it probably returns them; InfiniteFuture if unknown. A guess: no start depends on it.
  absl::Time expected_end = absl::InfiniteFuture();
  // When its time limit ends it; InfiniteFuture without a limit.
  absl::Time latest_end = absl::InfiniteFuture();
};

// A user's part.
struct UserShare {
  // Device-seconds held so far, older ones counting less; those of present leases included.
  double device_seconds = 0;
  // Devices that may be held at a time; 0: any number.
  int max_devices = 0;
};

// All that a decision depends on.
struct Snapshot {
  absl::Time now;
  std::vector<DeviceSlot> devices;
  std::vector<HoldingJob> holding;
  // Those that are not in it have used nothing and have no quota.
  absl::flat_hash_map<std::string, UserShare> users;
  // Not owned; unchanged while the snapshot is in use.
  const JobQueue* queue = nullptr;
};

// A job and the devices of its gang, each once.
struct Placement {
  std::string job_id;
  std::vector<std::string> devices;
  // For JobQueue::Start.
  bool was_longest = false;
};

// A waiting job that devices are kept for.
struct Reservation {
  std::string job_id;
  // When it starts at the latest, by the time limits of the jobs that hold its devices; InfiniteFuture if a
  // job without a limit holds a device.
  absl::Time start;
};

// What to do.
struct Decision {
  // Jobs to start, in order; in the snapshot their devices have room for all of them together.
  std::vector<Placement> placements;
  // Jobs that are to give up their devices, by id.
  std::vector<std::string> preemptions;
  // Jobs that nothing else that starts may delay, in order. None where no device has room: then nothing
  // could.
  std::vector<Reservation> reservations;
  // For JobQueue::NoteWaiting.
  std::map<JobQueue::GroupKey, absl::Time> waiting;
};

// A waiting job, for people.
struct Explanation {
  std::string job_id;
  v1::Waiting waiting;
  // Levels that its wait has raised it above its priority.
  int raised_by = 0;
  // Decide would start it, or have others make room for it.
  bool is_to_act = false;
};

// Decides which jobs start where. Pure: no state, no clock, no side effect; thread-safe.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual Decision Decide(const Snapshot& snapshot) const = 0;
  // Why each job waits and when it may start, in the order in which they would.
  virtual std::vector<Explanation> Explain(const Snapshot& snapshot) const = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_PLACEMENT_POLICY_H_
