#ifndef TANDEM_TESTS_BENCH_LOAD_MANY_JOBS_H_
#define TANDEM_TESTS_BENCH_LOAD_MANY_JOBS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tandem::bench {

struct ManyJobsSettings {
  int64_t queued = 10'000;
  int64_t finished = 100'000;
  // Of each kind of call.
  int calls = 300;
  // While calls are measured for the second time; 0: they are measured once.
  double submits_per_second = 20;
};

// How long lists, looks at single jobs and the beginnings of streams take, one after the other, of a daemon
// with so many jobs and one that trains; first undisturbed, then while jobs are submitted, so that the queue
// changes. Prints JSON lines and a table.
absl::Status MeasureManyJobs(const ManyJobsSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_MANY_JOBS_H_
