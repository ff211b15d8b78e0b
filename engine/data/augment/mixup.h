#ifndef TANDEM_ENGINE_DATA_AUGMENT_MIXUP_H_
#define TANDEM_ENGINE_DATA_AUGMENT_MIXUP_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/mixing.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckMixup(const v1::Mixup& mixup);

// For samples of any shape, with `elements` elements. T is uint8_t or float.
template <typename T>
std::unique_ptr<const Mixing<T>> MakeMixup(const v1::Mixup& mixup, int64_t elements);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_MIXUP_H_
