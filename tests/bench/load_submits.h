#ifndef TANDEM_TESTS_BENCH_LOAD_SUBMITS_H_
#define TANDEM_TESTS_BENCH_LOAD_SUBMITS_H_

#include "absl/status/status.h"

namespace tandem::bench {

struct SubmitsSettings {
  double per_second = 500;
  int seconds = 60;
  int connections = 16;
};

// Submits jobs at a steady rate without waiting for answers (an open loop) while a job trains. Measures the
// time from the planned submit to the answer. Then kills the daemon with SIGKILL, and checks that the next
// daemon has all accepted jobs. Prints a JSON line and a table. DATA_LOSS if an accepted job is missing.
absl::Status MeasureSubmits(const SubmitsSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_SUBMITS_H_
