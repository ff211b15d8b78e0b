#ifndef TANDEM_ENGINE_DATA_FORMATS_IMAGE_SCALE_H_
#define TANDEM_ENGINE_DATA_FORMATS_IMAGE_SCALE_H_

#include <cstdint>

namespace tandem {

// A side of an image that is scaled from `size` to `scaled` pixels. Only `count` pixels from `first` on are
// needed.
struct ScaledSide {
  int64_t size = 0;
  int64_t scaled = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// Scales an image [vertical.size, horizontal.size, channels] of bytes, and writes the needed pixels to `to`
// [vertical.count, horizontal.count, channels]. `channels` is 1 or 3. If a side shrinks, a new pixel weights
// the old pixels by the covered part. If the side grows, a new pixel weights the two nearest pixels by their
// nearness. Memory: a few rows of the image, or a row of the result for each row of the image if the height
// grows.
void ScalePixels(const uint8_t* pixels, int64_t channels, const ScaledSide& vertical,
                 const ScaledSide& horizontal, uint8_t* to);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IMAGE_SCALE_H_
