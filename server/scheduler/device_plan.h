#ifndef TANDEM_SERVER_SCHEDULER_DEVICE_PLAN_H_
#define TANDEM_SERVER_SCHEDULER_DEVICE_PLAN_H_

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"

namespace tandem {

// A snapshot's devices, now and as they become free, while a decision is made: jobs are started, or get a
// reservation, one after the other.
//
// A reservation takes its devices whole from the time when all of them are free; what is planned behind it
// follows it. A job may start on a reserved device only if its time limit ends it before the reservation.
// If nobody knows when a reservation begins, or it should have begun, nothing starts on its devices. So the
// jobs that start never move a reservation to a later time. Not thread-safe; the snapshot outlives it.
class DevicePlan {
 public:
  // The times at which jobs are taken to end.
  enum class Times {
    kLatest,    // by their time limits: for decisions
    kExpected,  // as estimated: a forecast for people
  };
  explicit DevicePlan(const Snapshot& snapshot, Times times = Times::kLatest);

  // Whether the job could run.
  enum class Fit {
    kFits,
    kOutOfService,  // only with devices that are drained or excluded
    kMissing,       // the machine has too few of them, or too small ones
  };
  Fit FitOf(const WaitingJob& job);

  // Takes devices for the job now and returns them, as positions; empty if too few have room or the job could
  // delay a reservation. For a job that FitOf says fits.
  std::vector<int> Start(const WaitingJob& job);
  // Takes these devices, which have room, for the job now.
  void Take(const std::vector<int>& devices, const WaitingJob& job);

  // Reserves devices for the job and returns from when; InfiniteFuture if nobody knows. For a job that fits.
  absl::Time Reserve(const WaitingJob& job);

  // Has jobs of lower priority that allow it make room for this one, and reserves their devices, where that
  // is enough; returns whether it is. Those that are to end, if any, are appended to `preemptions`.
  bool Preempt(const WaitingJob& job, std::vector<std::string>* preemptions);

  // Whether any device has room for anything.
  bool HasRoom() const { return !roomy_.empty(); }
  // The lowest priority of a job that could be preempted; INT_MAX where there is none.
  int lowest_preemptible() const { return lowest_preemptible_; }
  // Devices with room for the job now, reserved or not; and all that suit it and are in service.
  int CountRoom(const WaitingJob& job);
  int CountSuitable(const WaitingJob& job);
  // The kind of device that the job gets.
  v1::DeviceKind KindFor(const WaitingJob& job) const;

 private:
  struct Device {
    const DeviceSlot* slot = nullptr;
    // Jobs on it, as positions in `holding`.
    std::vector<int> holders;
    double free_share = 1;
    int64_t free_memory_bytes = 0;
    // All on it share it.
    bool is_shareable = true;
    // Something was started on it.
    bool is_taken = false;
    // When it is free of what is on it and planned for it. In the past: it is free, or should be. Time alone
    // changes neither this nor which of two devices is free first.
    absl::Time available_at = absl::InfinitePast();
    // When the first reservation begins.
    absl::Time reserved_at = absl::InfiniteFuture();
  };

  bool Suits(const Device& device, const WaitingJob& job, v1::DeviceKind kind) const;
  bool InService(const Device& device) const { return device.slot->state == v1::DEVICE_STATE_ACTIVE; }
  bool HasRoomFor(const Device& device, const WaitingJob& job) const;
  // Devices in service that suit the job, in `candidates_`.
  void FindCandidates(const WaitingJob& job);
  // A device, and which jobs, as positions in `holding`, would have to end for another to have room on it.
  struct Option {
    int position = 0;
    std::vector<int> victims;
    // The highest, and the earliest.
    int priority = INT_MIN;
    absl::Time lease_time = absl::InfiniteFuture();
  };
  // Finds them, of those that the job may have end; false where that is not enough.
  bool FindVictims(const WaitingJob& job, Option* option) const;
  absl::Time EndOf(const HoldingJob& job) const;
  absl::Duration RunTimeOf(const WaitingJob& job) const;
  void UpdateRoomy();

  const Snapshot& snapshot_;
  const Times times_;
  std::vector<Device> devices_;
  // Positions of devices on which something could start.
  std::vector<int> roomy_;
  std::vector<bool> ending_;
  int lowest_preemptible_;
  std::vector<int> candidates_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_DEVICE_PLAN_H_
