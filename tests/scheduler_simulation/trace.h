#ifndef TANDEM_TESTS_SCHEDULER_SIMULATION_TRACE_H_
#define TANDEM_TESTS_SCHEDULER_SIMULATION_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tandem {

// A job of a simulated day.
struct TraceJob {
  int number = 0;
  // The time of arrival since the beginning.
  absl::Duration arrival;
  int user = 0;
  int devices = 1;
  int priority = 0;
  // The job may be preempted for a job of higher priority. It later continues from its place.
  bool preemptible = false;
  // The real run time.
  absl::Duration run_time;
  // The time limit, at least run_time. Infinite without a limit.
  absl::Duration limit;
  // The scheduler's estimate of the run time.
  absl::Duration estimate;
};

// Returns jobs for a machine of 64 devices whose load is about its capacity. Sizes are powers of two with
// many small jobs. Run times are log-normal. Users overestimate run times by up to three times. A few jobs
// have a higher or lower priority. Estimates are the limits. The same seed gives the same trace on every
// machine, because all draws are integers.
std::vector<TraceJob> MakeTrace(uint64_t seed, int jobs, int users);

// Like MakeTrace, but every other job of a priority of 0 or less is preemptible.
std::vector<TraceJob> MakePreemptibleTrace(uint64_t seed, int jobs, int users);

// Like MakeTrace, but all jobs have the same user and priority. Two of three jobs have no time limit, and
// estimates are wrong by up to 16 times in either direction.
std::vector<TraceJob> MakeUnlimitedTrace(uint64_t seed, int jobs);

// Returns the 64-bit FNV-1a hash of all fields of all jobs, except `preemptible` and `estimate`.
uint64_t Checksum(const std::vector<TraceJob>& trace);

}  // namespace tandem

#endif  // TANDEM_TESTS_SCHEDULER_SIMULATION_TRACE_H_
