#ifndef TANDEM_TESTS_BENCH_LOAD_SOAK_H_
#define TANDEM_TESTS_BENCH_LOAD_SOAK_H_

#include "absl/status/status.h"

namespace tandem::bench {

struct SoakSettings {
  double minutes = 30;
  double sample_seconds = 10;
  // The number of clients. Each client repeats: submit a small job, watch it to its end, get it, list jobs,
  // delete it.
  int clients = 4;
  // The number of watchers of a job that trains during the whole test.
  int watchers = 50;
};

// Measures the daemon's memory, open files and sockets under a steady load that leaves nothing behind. Prints
// a JSON line for each sample, and a table.
absl::Status MeasureSoak(const SoakSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_SOAK_H_
