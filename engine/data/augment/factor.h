#ifndef TANDEM_ENGINE_DATA_AUGMENT_FACTOR_H_
#define TANDEM_ENGINE_DATA_AUGMENT_FACTOR_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckFactor(const v1::RandomFactor& factor);

// Changes x to f x with a random factor f. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeBrightness(const v1::RandomFactor& factor, const ImageShape& shape);
// Changes x to m + f (x - m). m is the mean of the image over all channels.
template <typename T>
std::unique_ptr<const Transform<T>> MakeContrast(const v1::RandomFactor& factor, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_FACTOR_H_
