#ifndef TANDEM_ENGINE_DATA_AUGMENT_TRANSLATION_H_
#define TANDEM_ENGINE_DATA_AUGMENT_TRANSLATION_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Check a message. INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckTranslation(const v1::RandomTranslation& translation, const ImageShape& shape);
absl::Status CheckCrop(const v1::RandomCrop& crop, const ImageShape& shape);

// Moves an image by whole pixels. Draws the move to the right first, then the move down. All integers of a
// range are equally likely. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeTranslation(const v1::RandomTranslation& translation,
                                                    const ImageShape& shape);
// A crop of the padded image is a translation by at most the padding.
template <typename T>
std::unique_ptr<const Transform<T>> MakeCrop(const v1::RandomCrop& crop, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_TRANSLATION_H_
