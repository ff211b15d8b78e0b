#ifndef TANDEM_ENGINE_DATA_AUGMENT_TRANSLATION_H_
#define TANDEM_ENGINE_DATA_AUGMENT_TRANSLATION_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the fields at fault, relative to the message.
absl::Status CheckTranslation(const v1::RandomTranslation& translation, const ImageShape& shape);
absl::Status CheckCrop(const v1::RandomCrop& crop, const ImageShape& shape);

// Moves an image by whole pixels, first drawn to the right, then down: an integer of each range is as likely
// as any other. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeTranslation(const v1::RandomTranslation& translation,
                                                    const ImageShape& shape);
// A crop of the padded image is a translation by at most the padding.
template <typename T>
std::unique_ptr<const Transform<T>> MakeCrop(const v1::RandomCrop& crop, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_TRANSLATION_H_
