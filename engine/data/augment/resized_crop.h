#ifndef TANDEM_ENGINE_DATA_AUGMENT_RESIZED_CROP_H_
#define TANDEM_ENGINE_DATA_AUGMENT_RESIZED_CROP_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckResizedCrop(const v1::RandomResizedCrop& crop, const ImageShape& shape);

// Enlarges a random rectangle of an image to the image's size. The numbers: left, top, width, height, in
// whole pixels. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeResizedCrop(const v1::RandomResizedCrop& crop,
                                                    const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_RESIZED_CROP_H_
