#ifndef TANDEM_SERVER_SCHEDULER_DEVICE_PLAN_H_
#define TANDEM_SERVER_SCHEDULER_DEVICE_PLAN_H_

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// A snapshot's devices during a decision: now, and as they become free. Jobs start or get reservations one
// after another.
//
// A reservation takes its devices whole, from the time when all of them are free. Later plans on these
// devices follow the reservation. A job may start on a reserved device only if its time limit ends it before
// the reservation. If the reservation's start is unknown or has passed, nothing starts on its devices. So a
// started job never delays a reservation. Not thread-safe. The snapshot must outlive the plan.
class DevicePlan {
 public:
  // The assumed ends of jobs.
  enum class Times {
    kLatest,    // the time limits, for decisions
    kExpected,  // the estimates, a forecast for people
  };
  explicit DevicePlan(const Snapshot& snapshot, Times times = Times::kLatest);

  // The result of FitOf.
  enum class Fit {
    kFits,
    kOutOfService,  // only with drained or excluded devices
    kMissing,       // the machine has too few devices, or they are too small
  };
  Fit FitOf(const WaitingJob& job);

  // Takes devices for the job now, and returns their positions. Empty if too few have room, or if the job
  // could delay a reservation. The job must fit (FitOf).
  std::vector<int> Start(const WaitingJob& job);
  // Takes these devices, which must have room, for the job now.
  void Take(const std::vector<int>& devices, const WaitingJob& job);

  // Reserves devices for the job, and returns the reservation's start; InfiniteFuture if unknown. The job
  // must fit.
  absl::Time Reserve(const WaitingJob& job);

  // Preempts preemptible jobs of lower priority, and reserves their devices for the job. Returns false,
  // without changes, if that is not enough. Appends the preempted jobs to `preemptions`.
  bool Preempt(const WaitingJob& job, std::vector<std::string>* preemptions);

  // Returns true if any device has room for some job.
  bool HasRoom() const { return !roomy_.empty(); }
  // Returns the lowest priority of a preemptible job; INT_MAX if none.
  int lowest_preemptible() const { return lowest_preemptible_; }
  // Return the number of devices with room for the job now, reserved or not, the number of suitable devices
  // in service, and the number of all suitable devices.
  int CountRoom(const WaitingJob& job);
  int CountSuitable(const WaitingJob& job);
  int CountAll(const WaitingJob& job) const { return CountOfKind(job, KindFor(job)); }
  // Returns the kind of device for the job.
  v1::DeviceKind KindFor(const WaitingJob& job) const;

 private:
  struct Device {
    const DeviceSlot* slot = nullptr;
    // The jobs on the device, as positions in `holding`.
    std::vector<int> holders;
    double free_share = 1;
    int64_t free_memory_bytes = 0;
    // True if all jobs on the device share it.
    bool is_shareable = true;
    // True if a job was started on the device in this decision.
    bool is_taken = false;
    // The time at which the device is free of current and planned jobs. If in the past, the device is free or
    // should be. Passing time changes neither this value nor the order of two devices.
    absl::Time available_at = absl::InfinitePast();
    // The start of the first reservation.
    absl::Time reserved_at = absl::InfiniteFuture();
  };

  bool Suits(const Device& device, const WaitingJob& job, v1::DeviceKind kind) const;
  // Returns the number of devices that suit the job if it takes devices of this kind.
  int CountOfKind(const WaitingJob& job, v1::DeviceKind kind) const;
  bool InService(const Device& device) const { return device.slot->state == v1::DEVICE_STATE_ACTIVE; }
  bool HasRoomFor(const Device& device, const WaitingJob& job) const;
  // Sets `candidates_` to the devices in service that suit the job.
  void FindCandidates(const WaitingJob& job);
  // A device, and the jobs that must end to make room on it, as positions in `holding`.
  struct Option {
    int position = 0;
    std::vector<int> victims;
    // The victims' highest priority and earliest lease.
    int priority = INT_MIN;
    absl::Time lease_time = absl::InfiniteFuture();
  };
  // Finds the jobs to end among the jobs that may be preempted. Returns false if they do not suffice.
  bool FindVictims(const WaitingJob& job, Option* option) const;
  absl::Time EndOf(const HoldingJob& job) const;
  absl::Duration RunTimeOf(const WaitingJob& job) const;
  void UpdateRoomy();

  const Snapshot& snapshot_;
  const Times times_;
  std::vector<Device> devices_;
  // Positions of devices on which some job could start.
  std::vector<int> roomy_;
  std::vector<bool> ending_;
  int lowest_preemptible_;
  std::vector<int> candidates_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_DEVICE_PLAN_H_
