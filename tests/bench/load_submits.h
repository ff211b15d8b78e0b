#ifndef TANDEM_TESTS_BENCH_LOAD_SUBMITS_H_
#define TANDEM_TESTS_BENCH_LOAD_SUBMITS_H_

#include "absl/status/status.h"

namespace tandem::bench {

struct SubmitsSettings {
  double per_second = 500;
  int seconds = 60;
  int connections = 16;
};

// Jobs submitted at a steady rate, whether those before were answered or not (an open loop), while one job
// trains: how long after its time each was accepted; then SIGKILL to the daemon, and whether the next has all
// of them. Prints a JSON line and a table. DATA_LOSS: a job is missing that was accepted.
absl::Status MeasureSubmits(const SubmitsSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_SUBMITS_H_
