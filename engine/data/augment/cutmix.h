#ifndef TANDEM_ENGINE_DATA_AUGMENT_CUTMIX_H_
#define TANDEM_ENGINE_DATA_AUGMENT_CUTMIX_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/mixing.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the fields at fault, relative to the message.
absl::Status CheckCutmix(const v1::Cutmix& cutmix);

// For images: the rectangle has the proportions of the image, its centre may be anywhere in it, and what
// stands out is cut off. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Mixing<T>> MakeCutmix(const v1::Cutmix& cutmix, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_CUTMIX_H_
