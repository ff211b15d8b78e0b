#ifndef TANDEM_ENGINE_DATA_AUGMENT_CUTMIX_H_
#define TANDEM_ENGINE_DATA_AUGMENT_CUTMIX_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/mixing.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckCutmix(const v1::Cutmix& cutmix);

// For images. The rectangle has the image's proportions. Its centre is anywhere in the image, and parts
// outside the image are cut off. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Mixing<T>> MakeCutmix(const v1::Cutmix& cutmix, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_CUTMIX_H_
