#ifndef TANDEM_SERVER_SWEEPS_EXPANSION_H_
#define TANDEM_SERVER_SWEEPS_EXPANSION_H_

#include <cstddef>
#include <string>
#include <vector>

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

// The most jobs that a sweep makes, the most fields in which they differ, and the most bytes of all together,
// as they are stored and in memory: a layer that says little has a few bytes here, and a hundred there.
inline constexpr int kMostSweepJobs = 1000;
inline constexpr int kMostSweepFields = 100;
inline constexpr size_t kMostSweepBytes = 64 << 20;
inline constexpr size_t kMostSweepMemory = 256 << 20;

// The jobs of a sweep, in their order: a grid's, the last field the fastest, or random ones, which follow
// from the seed, the number of the sample and the position of the field alone. Their objective is the
// sweep's. INVALID_ARGUMENT: with each field at fault, paths beginning with "sweep.". RESOURCE_EXHAUSTED: too
// many jobs, or too large ones. Whether the specs are right is not looked at.
absl::StatusOr<std::vector<SweepJob>> ExpandSweep(const v1::Sweep& sweep);

// The memory that a job takes, as kMostSweepMemory counts it.
size_t BytesOf(const SweepJob& job);

// "training.epochs=3, training.global_batch_size=64".
std::string DescribeValues(const std::vector<v1::SweepValue>& values);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_EXPANSION_H_
