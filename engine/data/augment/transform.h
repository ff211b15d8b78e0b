#ifndef TANDEM_ENGINE_DATA_AUGMENT_TRANSFORM_H_
#define TANDEM_ENGINE_DATA_AUGMENT_TRANSFORM_H_

#include <cstdint>

#include "engine/base/philox.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The shape of an image: planes one after the other, row by row, [channels, height, width].
struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t elements() const { return channels * height * width; }
};

// The largest number of random numbers of a transform.
inline constexpr int kMostDrawn = 4;

// A random change of an image. T is uint8_t or float. Immutable, so thread-safe.
template <typename T>
class Transform {
 public:
  virtual ~Transform() = default;
  // Returns the number of random numbers, at most kMostDrawn. They equal the numbers of the op in
  // engine/graph/ops/augmentation.h that makes the same change on a device.
  virtual int numbers() const = 0;
  // Draws the numbers into `drawn`.
  virtual void Draw(RandomStream& random, double* drawn) const = 0;
  // Changes `image` by the numbers of Draw. `scratch` has room for another image.
  virtual void Apply(const double* drawn, T* image, T* scratch) const = 0;
};

// Returns the place where pixel `i` of a line of `n` is read, for any i, or -1 for a zero.
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
