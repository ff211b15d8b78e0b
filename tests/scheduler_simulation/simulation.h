#ifndef TANDEM_TESTS_SCHEDULER_SIMULATION_SIMULATION_H_
#define TANDEM_TESTS_SCHEDULER_SIMULATION_SIMULATION_H_

#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/placement_policy.h"
#include "tests/scheduler_simulation/trace.h"

namespace tandem {

// How a policy did on a trace.
struct Score {
  // By number: when each job started first, since the beginning.
  std::vector<absl::Duration> starts;
  int started = 0;
  int ended = 0;
  // Jobs that were told to make room for others; how many of them ended before they had to wait again.
  int preemptions = 0;
  int preempted_ends = 0;
  // From when a job was submitted, or had made room, to its start.
  absl::Duration longest_wait;
  absl::Duration mean_wait;
  // Of jobs of a priority above 0.
  absl::Duration mean_urgent_wait;
  // From the first arrival to the last end.
  absl::Duration makespan;
  // Of the devices' time while at least one job waited, the part in which they were held.
  double utilisation_while_waiting = 0;
  // Jobs that started while one of higher priority waited: one that had a reservation, one that its wait had
  // not yet raised as high as the job, and one that had neither.
  int passed_reserved = 0;
  int passed_by_age = 0;
  int inversions = 0;
  // Jobs that started raised by more levels than they had waited ageing intervals, all their waits together.
  int raised_too_much = 0;
  // Jobs that started later than a reservation of theirs said.
  int late = 0;
  // The furthest that a user's device-seconds were from the mean of all users', as a part of that mean, over
  // the time in which jobs of all users waited; and how long that was.
  double worst_share = 0;
  absl::Duration contended;
  // Decisions: how many, and the processor time that they took.
  int decisions = 0;
  absl::Duration decision_median;
  absl::Duration decision_p99;
  absl::Duration decision_longest;
  // Of those with at least nine tenths of the longest queue; how many they were.
  absl::Duration long_queue_p99;
  int long_queue_decisions = 0;
  int longest_queue = 0;
};

// After this, a group that waits goes up a level: see JobQueue.
inline constexpr absl::Duration kAgeingInterval = absl::Hours(1);

// How long a job that is told to make room takes to write its checkpoint and to go.
inline constexpr absl::Duration kTimeToMakeRoom = absl::Seconds(30);

// Plays the trace to its end on `devices` equal devices by a clock of its own. Checks that no device is ever
// given to two jobs, and that each job gets all of its devices or none: dies otherwise.
Score Simulate(const std::vector<TraceJob>& trace, int devices, const PlacementPolicy& policy);

// The makespan of the same work where jobs could be cut into pieces of one device for any time: no policy has
// less.
absl::Duration IdealMakespan(const std::vector<TraceJob>& trace, int devices);

}  // namespace tandem

#endif  // TANDEM_TESTS_SCHEDULER_SIMULATION_SIMULATION_H_
