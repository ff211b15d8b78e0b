#ifndef TANDEM_TESTS_BENCH_LOAD_WATCHERS_H_
#define TANDEM_TESTS_BENCH_LOAD_WATCHERS_H_

#include "absl/status/status.h"

namespace tandem::bench {

struct WatchersSettings {
  int watchers = 1000;
  // The number of connections that the watchers share. 0: each has its own.
  int connections = 0;
  // The length of each window, with watchers and without.
  int seconds = 30;
  // The number of windows of each kind. The two kinds alternate.
  int rounds = 3;
  // The core of the training, and the core of the daemon and all watchers. -1: the system chooses.
  int training_core = 0;
  int daemon_core = 1;
};

// Measures watchers of a job that reports once a second: the time from the creation of an event until each
// watcher has it, and the job's speed with and without watchers. Prints JSON lines and a table.
absl::Status MeasureWatchers(const WatchersSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_WATCHERS_H_
