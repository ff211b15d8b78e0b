#ifndef TANDEM_SERVER_SWEEPS_EXPANSION_H_
#define TANDEM_SERVER_SWEEPS_EXPANSION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tandem/v1/job.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// A job of a sweep.
struct SweepJob {
  // The base with the job's values.
  v1::JobSpec spec;
  // In the order of the sweep's fields.
  std::vector<v1::SweepValue> values;
};

// The most jobs of a sweep, the most varied fields, and the most bytes of all its serialized specs.
inline constexpr int kMostSweepJobs = 1000;
inline constexpr int kMostSweepFields = 100;
inline constexpr size_t kMostSweepBytes = 64 << 20;
inline constexpr int kDefaultPruningJobs = 5;

// Returns the number of SUCCEEDED jobs from which jobs are pruned: min_jobs, or its default.
int MinJobsOf(const v1::SweepPruning& pruning);

// The jobs of a sweep. Each job is made on request. Thread-safe.
class SweepExpansion {
 public:
  // `sweep` must outlive the expansion. INVALID_ARGUMENT names each wrong field, with paths from "sweep." on.
  // RESOURCE_EXHAUSTED: too many or too large jobs. Does not check the specs.
  static absl::StatusOr<SweepExpansion> Create(const v1::Sweep* sweep);

  int jobs() const { return jobs_; }
  // Returns the bytes of all serialized specs and values.
  size_t bytes() const { return bytes_; }

  // Returns the job with this number, counted from 0. In a grid, the last field varies fastest. A random job
  // depends only on the seed, the number and the field's position. The job has the sweep's objective.
  SweepJob Job(int number) const;

 private:
  SweepExpansion(const v1::Sweep* sweep, int jobs) : sweep_(sweep), jobs_(jobs) {}

  const v1::Sweep* sweep_;
  int jobs_;
  size_t bytes_ = 0;
};

// Returns RESOURCE_EXHAUSTED for a sweep whose specs exceed kMostSweepBytes.
absl::Status SweepTooLarge();

// Returns for example "training.epochs=3, training.global_batch_size=64".
std::string DescribeValues(const std::vector<v1::SweepValue>& values);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_EXPANSION_H_
