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

// The most numbers that a transform draws.
inline constexpr int kMostDrawn = 4;

// A random change of one image. T is uint8_t or float. Immutable, so any number of threads may use it.
template <typename T>
class Transform {
 public:
  virtual ~Transform() = default;
  // How many numbers it draws, at most kMostDrawn: those of the op in engine/graph/ops/augmentation.h that
  // does the same on a device.
  virtual int numbers() const = 0;
  // Draws them.
  virtual void Draw(RandomStream& random, double* drawn) const = 0;
  // Changes `image` by what was drawn. `scratch` has room for another image.
  virtual void Apply(const double* drawn, T* image, T* scratch) const = 0;
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
