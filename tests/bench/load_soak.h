#ifndef TANDEM_TESTS_BENCH_LOAD_SOAK_H_
#define TANDEM_TESTS_BENCH_LOAD_SOAK_H_

#include "absl/status/status.h"

namespace tandem::bench {

struct SoakSettings {
  double minutes = 30;
  double sample_seconds = 10;
  // Who each submit a small job, watch it to its end, look at it and at a list, and delete it, again and
  // again.
  int clients = 4;
  // Of a job that trains all the while.
  int watchers = 50;
};

// How the daemon's memory, open files and sockets go under a steady load that leaves nothing behind. Prints a
// JSON line a sample, and a table.
absl::Status MeasureSoak(const SoakSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_SOAK_H_
