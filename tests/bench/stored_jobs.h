#ifndef TANDEM_TESTS_BENCH_STORED_JOBS_H_
#define TANDEM_TESTS_BENCH_STORED_JOBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/v1/job.pb.h"

namespace tandem::bench {

// The names of jobs in a daemon's state folder.
struct StoredJobs {
  std::vector<std::string> finished;
  std::vector<std::string> queued;
};

// Adds jobs to the state folder of a stopped daemon with the daemon's own code: `finished` trained jobs with
// nine events each, then `queued` jobs. `like` is a job from an answer of this daemon; the new jobs have its
// spec.
absl::StatusOr<StoredJobs> StoreJobs(const std::string& state_folder, const v1::Job& like, int64_t finished,
                                     int64_t queued);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_STORED_JOBS_H_
