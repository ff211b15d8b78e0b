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

// One of the jobs that a sweep makes.
struct SweepJob {
  // The base with the values in place.
  v1::JobSpec spec;
  // In the order of the sweep's fields.
  std::vector<v1::SweepValue> values;
};

// The most jobs that a sweep makes, the most fields in which they differ, and the most bytes of all its jobs'
// specs as they are stored.
inline constexpr int kMostSweepJobs = 1000;
inline constexpr int kMostSweepFields = 100;
inline constexpr size_t kMostSweepBytes = 64 << 20;

// The jobs of a sweep, each made when it is asked for. Thread-safe.
class SweepExpansion {
 public:
  // `sweep` outlives the expansion. INVALID_ARGUMENT: with each field at fault, paths beginning with
  // "sweep.". RESOURCE_EXHAUSTED: too many jobs, or too large ones. Whether the specs are right is not looked
  // at.
  static absl::StatusOr<SweepExpansion> Create(const v1::Sweep* sweep);

  int jobs() const { return jobs_; }
  // Bytes of all specs and values, serialised.
  size_t bytes() const { return bytes_; }

  // The job of a number from 0: a grid's, the last field the fastest, or a random one, which follows from the
  // seed, the number and the position of the field alone. Its objective is the sweep's.
  SweepJob Job(int number) const;

 private:
  SweepExpansion(const v1::Sweep* sweep, int jobs) : sweep_(sweep), jobs_(jobs) {}

  const v1::Sweep* sweep_;
  int jobs_;
  size_t bytes_ = 0;
};

// RESOURCE_EXHAUSTED for a sweep whose specs have more than kMostSweepBytes together.
absl::Status SweepTooLarge();

// "training.epochs=3, training.global_batch_size=64".
std::string DescribeValues(const std::vector<v1::SweepValue>& values);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_EXPANSION_H_
