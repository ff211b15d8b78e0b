#ifndef TANDEM_ENGINE_DATA_STATISTICS_H_
#define TANDEM_ENGINE_DATA_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/data/dataset.h"

namespace tandem {

// Of the raw samples, bytes or floats, one number a channel (the first extent of a sample). The deviation is
// that of the samples themselves: the root of the mean squared distance from the mean.
struct ChannelStatistics {
  std::vector<double> mean;
  std::vector<double> standard_deviation;
};

// Reads all samples of `dataset`, one of the splits that `info` describes. Empty for tokens.
ChannelStatistics ComputeStatistics(const Dataset& dataset, const DatasetInfo& info);

// How many samples each class has; reads all targets. Empty where targets are no classes.
std::vector<int64_t> CountClasses(const Dataset& dataset, const DatasetInfo& info);

// The least and the largest of some numbers.
struct Range {
  float least;
  float largest;
};

// The range of all targets' numbers; reads all targets. Empty if targets are no values, and without samples.
std::optional<Range> RangeOfTargets(const Dataset& dataset, const DatasetInfo& info);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_STATISTICS_H_
