#ifndef TANDEM_ENGINE_DATA_AUGMENT_AFFINE_H_
#define TANDEM_ENGINE_DATA_AUGMENT_AFFINE_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Check a message. INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckRotation(const v1::RandomRotation& rotation);
absl::Status CheckScale(const v1::RandomScale& scale);

// Rotates an image about its centre, counter-clockwise if the angle is above 0. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeRotation(const v1::RandomRotation& rotation, const ImageShape& shape);
// Scales an image about its centre: larger if the factor is above 1, else smaller.
template <typename T>
std::unique_ptr<const Transform<T>> MakeScale(const v1::RandomScale& scale, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_AFFINE_H_
