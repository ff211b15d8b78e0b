#ifndef TANDEM_TESTS_SCHEDULER_SIMULATION_SIMULATION_H_
#define TANDEM_TESTS_SCHEDULER_SIMULATION_SIMULATION_H_

#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"
#include "tests/scheduler_simulation/trace.h"

namespace tandem {

// The results of a policy on a trace.
struct Score {
  // The first start of each job since the beginning, by the job's number.
  std::vector<absl::Duration> starts;
  int started = 0;
  int ended = 0;
  // Preemptions, and preempted jobs that ended before they had to wait again.
  int preemptions = 0;
  int preempted_ends = 0;
  // The wait from a submit, or from the end of a preemption, to the start.
  absl::Duration longest_wait;
  absl::Duration mean_wait;
  // The mean wait of jobs with a priority above 0.
  absl::Duration mean_urgent_wait;
  // The time from the first arrival to the last end.
  absl::Duration makespan;
  // The held share of the devices' time while at least one job waited.
  double utilisation_while_waiting = 0;
  // Jobs that started while a job of higher priority waited. The waiting job had a reservation
  // (passed_reserved), or its wait had not yet raised it as high as the job (passed_by_age), or neither
  // (inversions).
  int passed_reserved = 0;
  int passed_by_age = 0;
  int inversions = 0;
  // Jobs that started raised by more levels than the ageing intervals of all their waits.
  int raised_too_much = 0;
  // Jobs that started later than one of their reservations.
  int late = 0;
  // The largest deviation of a user's device-seconds from the mean of all users, as a share of the mean. Only
  // the time in which jobs of all users waited counts; `contended` is the length of this time.
  double worst_share = 0;
  absl::Duration contended;
  // The number of decisions, and their processor times.
  int decisions = 0;
  absl::Duration decision_median;
  absl::Duration decision_p99;
  absl::Duration decision_longest;
  // The same for decisions with at least nine tenths of the longest queue, and their number.
  absl::Duration long_queue_p99;
  int long_queue_decisions = 0;
  int longest_queue = 0;
};

// The time after which a waiting group rises by a level: see JobQueue.
inline constexpr absl::Duration kAgeingInterval = absl::Hours(1);

// The time from a preemption until the job has written its checkpoint and freed its devices.
inline constexpr absl::Duration kTimeToMakeRoom = absl::Seconds(30);

// Simulates the trace to its end on `devices` equal devices, on a simulated clock. Dies if a device is given
// to two jobs, or if a job gets only some of its devices.
Score Simulate(const std::vector<TraceJob>& trace, int devices, const PlacementPolicy& policy);

// Returns the makespan of the same work if jobs could be cut into pieces of one device for any time. No
// policy has less.
absl::Duration IdealMakespan(const std::vector<TraceJob>& trace, int devices);

}  // namespace tandem

#endif  // TANDEM_TESTS_SCHEDULER_SIMULATION_SIMULATION_H_
