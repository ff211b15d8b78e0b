#ifndef TANDEM_ENGINE_DATA_AUGMENT_FACTOR_H_
#define TANDEM_ENGINE_DATA_AUGMENT_FACTOR_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the fields at fault, relative to the message.
absl::Status CheckFactor(const v1::RandomFactor& factor);

// x -> f x, where f is drawn. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeBrightness(const v1::RandomFactor& factor, const ImageShape& shape);
// x -> m + f (x - m), where m is the mean of the image, all channels together.
template <typename T>
std::unique_ptr<const Transform<T>> MakeContrast(const v1::RandomFactor& factor, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_FACTOR_H_
