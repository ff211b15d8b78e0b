#ifndef TANDEM_ENGINE_DATA_STATISTICS_H_
#define TANDEM_ENGINE_DATA_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Statistics of the raw samples, bytes or floats, with a number for each channel (the first extent of a
// sample). The deviation is the root of the mean squared distance from the mean.
struct ChannelStatistics {
  std::vector<double> mean;
  std::vector<double> standard_deviation;
};

// Adds up the statistics of samples that arrive in pieces. Not thread-safe.
class StatisticsSum {
 public:
  // `info` describes the samples.
  explicit StatisticsSum(const DatasetInfo& info);

  // Returns how often all samples must be added. Bytes need a pass, floats two, so that a large mean does not
  // hide a small deviation. Tokens need none.
  int passes() const;
  // Adds samples, one after the other as Dataset::Gather writes them.
  void Add(const void* samples, int64_t count);
  // Ends a pass. Each pass must have the same samples, in the same order.
  void EndPass();
  // Returns the statistics, after all passes. Empty without samples.
  ChannelStatistics Finish() const;

 private:
  void AddFloats(const float* values, int64_t count);

  const SampleType type_;
  const Channels channels_;
  int64_t samples_ = 0;
  bool is_second_pass_ = false;
  // The sums of a channel's bytes and of their squares. Exact for up to 2^63 / 255^2 = 1.4e14 bytes.
  struct ByteSum {
    int64_t bytes = 0;
    int64_t squares = 0;
  };
  std::vector<ByteSum> byte_sums_;  // For bytes.
  // For floats: sums, and in the end means.
  std::vector<double> means_;
  std::vector<double> squares_;
};

// The functions below return the errors of Dataset::Gather.

// Reads all samples of `dataset`, a split that `info` describes, and returns their statistics. Empty for
// tokens.
absl::StatusOr<ChannelStatistics> ComputeStatistics(const Dataset& dataset, const DatasetInfo& info);

// Returns the number of samples of each class, without ignored labels. Reads all targets. Empty if targets
// are no classes.
absl::StatusOr<std::vector<int64_t>> CountClasses(const Dataset& dataset, const DatasetInfo& info);

// Returns the samples of each class that has any, ascending, without samples of the class `ignored` and
// without ignored labels. Reads all targets, which are classes.
absl::StatusOr<std::vector<std::vector<uint32_t>>> SamplesOfClasses(const Dataset& dataset,
                                                                    const DatasetInfo& info,
                                                                    std::optional<int64_t> ignored);

// The smallest and the largest of some numbers.
struct Range {
  float least;
  float largest;
};

// Returns the range of all targets' numbers. Reads all targets. Empty if targets are no values, and without
// samples.
absl::StatusOr<std::optional<Range>> RangeOfTargets(const Dataset& dataset, const DatasetInfo& info);

// Reads all samples of `dataset` in pieces. Calls `use` with the number of a piece's first sample, its count,
// and the results of Dataset::Gather.
absl::Status ForAllSamples(
    const Dataset& dataset,
    absl::FunctionRef<void(int64_t first, int64_t count, const void* samples, const void* targets)> use);

// Counts of a data set's training samples.
struct TrainingCounts {
  // Empty for tokens.
  ChannelStatistics statistics;
  // Samples of each class. Empty if targets are no classes.
  std::vector<int64_t> classes;
};

// Counts the training samples of OpenDataset(spec), which `info` describes, without holding them. See
// StreamTraining. Errors as OpenDataset.
absl::StatusOr<TrainingCounts> CountTraining(const v1::DatasetSpec& spec, const DatasetInfo& info);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_STATISTICS_H_
