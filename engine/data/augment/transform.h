#ifndef TANDEM_ENGINE_DATA_AUGMENT_TRANSFORM_H_
#define TANDEM_ENGINE_DATA_AUGMENT_TRANSFORM_H_

#include <cstdint>

#include "engine/base/philox.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Of an image whose planes, row by row, lie one behind the other: [channels, height, width].
struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t elements() const { return channels * height * width; }
};

// A random change of one image. T is uint8_t or float. Immutable, so any number of threads may use it.
template <typename T>
class Transform {
 public:
  virtual ~Transform() = default;
  // Changes `image` by what it draws from `random`. `scratch` has room for another image.
  virtual void Apply(RandomStream& random, T* image, T* scratch) const = 0;
};

// Where the pixel at `i` of a line of `n` is read, i being anywhere; -1 where zero stands instead.
inline int64_t FillIndex(int64_t i, int64_t n, v1::FillMode fill) {
  if (i >= 0 && i < n) return i;
  switch (fill) {
    case v1::FILL_MODE_EDGE:
      return i < 0 ? 0 : n - 1;
    case v1::FILL_MODE_REFLECT: {
      if (n == 1) return 0;
      const int64_t period = 2 * n - 2;
      const int64_t within = ((i % period) + period) % period;
      return within < n ? within : period - within;
    }
    default:
      return -1;
  }
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_TRANSFORM_H_
