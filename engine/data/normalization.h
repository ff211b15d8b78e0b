#ifndef TANDEM_ENGINE_DATA_NORMALIZATION_H_
#define TANDEM_ENGINE_DATA_NORMALIZATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A Normalization as x = byte * scale[channel] + offset[channel]; one entry a channel of samples [channels,
// height, width], one entry in all of others.
struct ChannelScaling {
  std::vector<double> scale;
  std::vector<double> offset;
};

// INVALID_ARGUMENT with the fields at fault, relative to the Normalization ("mean", "standard_deviation[1]").
absl::StatusOr<ChannelScaling> ResolveNormalization(const v1::Normalization& normalization,
                                                    const Shape& sample);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_NORMALIZATION_H_
