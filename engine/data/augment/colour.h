#ifndef TANDEM_ENGINE_DATA_AUGMENT_COLOUR_H_
#define TANDEM_ENGINE_DATA_AUGMENT_COLOUR_H_

#include <memory>

#include "absl/status/status.h"
#include "engine/data/augment/transform.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Check a message. INVALID_ARGUMENT with the wrong fields, relative to the message; the path of the message
// itself is empty.
absl::Status CheckSaturation(const v1::RandomFactor& factor, const ImageShape& shape);
absl::Status CheckHue(const v1::RandomHue& hue, const ImageShape& shape, SampleType type);

// Changes each number x of a pixel to f x + (1 - f) grey with a random factor f. The pixel's grey is 0.299
// red
// + 0.587 green + 0.114 blue (ITU-R BT.601). T is uint8_t or float. `shape` has three channels.
template <typename T>
std::unique_ptr<const Transform<T>> MakeSaturation(const v1::RandomFactor& factor, const ImageShape& shape);

// Shifts the hue of each pixel. The number: the shift, as a share of the colour circle. `shape` has three
// channels.
std::unique_ptr<const Transform<uint8_t>> MakeHue(const v1::RandomHue& hue, const ImageShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_COLOUR_H_
