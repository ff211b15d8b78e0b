#ifndef TANDEM_ENGINE_BASE_MEASURE_DIRECTION_H_
#define TANDEM_ENGINE_BASE_MEASURE_DIRECTION_H_

#include "absl/strings/string_view.h"

namespace tandem {

// Returns whether smaller values of this measure are better: "loss", and metrics that measure an error, such
// as "mae". Larger values of all other metrics are better.
bool IsBetterIfSmaller(absl::string_view measure);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_MEASURE_DIRECTION_H_
