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
  // Since the beginning.
  absl::Duration arrival;
  int user = 0;
  int devices = 1;
  int priority = 0;
  // It may be told to make room for a job of higher priority, and goes on later from where it was.
  bool preemptible = false;
  // How long it really takes.
  absl::Duration run_time;
  // Its time limit, at least run_time; infinite without one.
  absl::Duration limit;
  // How long the scheduler expects it to take.
  absl::Duration estimate;
};

// Jobs as they come on a machine of 64 devices that is asked for about as much as it has: sizes are powers
// of two with many small ones, run times are log-normal, people overestimate them by up to three times, and a
// few jobs are of higher or lower priority. Estimates are the limits. The same seed gives the same trace on
// every machine: integers alone are drawn.
std::vector<TraceJob> MakeTrace(uint64_t seed, int jobs, int users);

// The same, but that every other job of a priority of 0 or less is preemptible.
std::vector<TraceJob> MakePreemptibleTrace(uint64_t seed, int jobs, int users);

// The same, but all of one user and priority; two of three jobs have no time limit, and estimates are wrong
// by up to 16 times in either direction.
std::vector<TraceJob> MakeUnlimitedTrace(uint64_t seed, int jobs);

// Of all fields of all jobs, but for `preemptible` and `estimate`: 64-bit FNV-1a.
uint64_t Checksum(const std::vector<TraceJob>& trace);

}  // namespace tandem

#endif  // TANDEM_TESTS_SCHEDULER_SIMULATION_TRACE_H_
