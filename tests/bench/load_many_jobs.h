#ifndef TANDEM_TESTS_BENCH_LOAD_MANY_JOBS_H_
#define TANDEM_TESTS_BENCH_LOAD_MANY_JOBS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tandem::bench {

struct ManyJobsSettings {
  int64_t queued = 10'000;
  int64_t finished = 100'000;
  // The number of calls of each kind.
  int calls = 300;
  // The rate of submits during the second measurement. 0: no second measurement.
  double submits_per_second = 20;
};

// Measures calls of a daemon with many jobs and a training job: lists, single jobs and starts of streams, one
// call after the other. Measures first without other load, and then while jobs are submitted, so that the
// queue changes. Prints JSON lines and a table.
absl::Status MeasureManyJobs(const ManyJobsSettings& settings);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOAD_MANY_JOBS_H_
