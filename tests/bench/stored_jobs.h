#ifndef TANDEM_TESTS_BENCH_STORED_JOBS_H_
#define TANDEM_TESTS_BENCH_STORED_JOBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/v1/job.pb.h"

namespace tandem::bench {

// The names of jobs that were put into a daemon's state folder.
struct StoredJobs {
  std::vector<std::string> finished;
  std::vector<std::string> queued;
};

// Puts jobs into the state folder of a daemon that does not run, by the daemon's own code: `finished` ones
// that were trained (nine events each), then `queued` ones. `like`: an answer of that daemon, whose spec they
// have.
absl::StatusOr<StoredJobs> StoreJobs(const std::string& state_folder, const v1::Job& like, int64_t finished,
                                     int64_t queued);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_STORED_JOBS_H_
