#ifndef TANDEM_TESTS_BENCH_LOAD_WATCHERS_H_
#define TANDEM_TESTS_BENCH_LOAD_WATCHERS_H_

#include "absl/status/status.h"

namespace tandem::bench {

struct WatchersSettings {
  int watchers = 1000;
  // Connections that they share; 0: one each.
  int connections = 0;
  // Of each window, with watchers and without.
  int seconds = 30;
  // How often one of either kind is measured, one after the other.
  int rounds = 3;
  // Where the job trains, and where the daemon and all watchers are; -1: wherever the system puts them.
  int training_core = 0;
  int daemon_core = 1;
};

// Watchers on a job that reports once a second: how long after an event was made each has it, and how fast
// the job trains with them and without. Prints JSON lines and a table.
absl::Status MeasureWatchers(const WatchersSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_WATCHERS_H_
