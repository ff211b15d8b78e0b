#ifndef TANDEM_ENGINE_DATA_AUGMENT_FLIP_H_
#define TANDEM_ENGINE_DATA_AUGMENT_FLIP_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckFlip(const v1::RandomFlip& flip);

// Mirror an image, left to right or top to bottom, with the message's probability. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeHorizontalFlip(const v1::RandomFlip& flip, const ImageShape& shape);
template <typename T>
std::unique_ptr<const Transform<T>> MakeVerticalFlip(const v1::RandomFlip& flip, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_FLIP_H_
