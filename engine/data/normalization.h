#ifndef TANDEM_ENGINE_DATA_NORMALIZATION_H_
#define TANDEM_ENGINE_DATA_NORMALIZATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The channels of a sample: the features of [features] and of [length, features], otherwise the first extent.
// The sample is an array [outer, count, area].
struct Channels {
  explicit Channels(const Shape& sample);

  int64_t outer = 1;
  int64_t count = 1;
  int64_t area = 1;
};

// A Normalization with its defaults: x = (sample * scale - mean[channel]) / standard_deviation[channel]. mean
// and standard_deviation have a number for all channels, or a number for each.
struct ResolvedNormalization {
  double scale = 1;
  std::vector<double> mean = {0};
  std::vector<double> standard_deviation = {1};
};

// Fills in the defaults. `samples` is the samples' type: kUInt8 or kFloat32. Numbers that must be computed
// from the data get stand-ins of their size, mean 0 and standard deviation 1. INVALID_ARGUMENT with the wrong
// fields, relative to the Normalization ("mean", "standard_deviation[1]").
absl::StatusOr<ResolvedNormalization> ResolveNormalization(const v1::Normalization& normalization,
                                                           const Shape& sample, DType samples);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_NORMALIZATION_H_
