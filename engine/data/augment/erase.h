#ifndef TANDEM_ENGINE_DATA_AUGMENT_ERASE_H_
#define TANDEM_ENGINE_DATA_AUGMENT_ERASE_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// INVALID_ARGUMENT with the wrong fields, relative to the message.
absl::Status CheckErase(const v1::RandomErase& erase);

// Sets a rectangle to zero in all channels. Draws the column of its centre first, then the row. T is uint8_t
// or float.
template <typename T>
std::unique_ptr<const Transform<T>> MakeErase(const v1::RandomErase& erase, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_ERASE_H_
