#ifndef TANDEM_ENGINE_BACKENDS_CUDA_LAYOUT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_LAYOUT_H_

#include <cstdint>
#include <utility>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem::cuda {

// The layouts' view of a tensor [outer, channels, inner]: samples, channels and positions.
struct ChannelSizes {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
  int64_t elements() const { return outer * channels * inner; }
};
// Returns the sizes of a shape [N, C, ...]. [N] has a single channel and position.
ChannelSizes ChannelSizesOf(const Shape& shape);

// The place of a tensor's elements in memory, always dense. A value type.
class Layout {
 public:
  // Row-major.
  static Layout Plain(DType dtype, Shape shape) { return {false, dtype, std::move(shape)}; }
  // Returns [N, C, ...] as [N, ..., C] in memory: the layout of cuDNN and of our image kernels, also for
  // weights [O, I, H, W]. Returns plain if both are equal.
  static Layout ChannelsLast(DType dtype, Shape shape);

  bool plain() const { return !channels_last_; }
  bool channels_last() const { return channels_last_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }

  // Returns the same layout for another type.
  Layout WithType(DType dtype) const { return {channels_last_, dtype, shape_}; }

  bool operator==(const Layout&) const = default;

 private:
  Layout(bool channels_last, DType dtype, Shape shape)
      : channels_last_(channels_last), dtype_(dtype), shape_(std::move(shape)) {}

  bool channels_last_;
  DType dtype_;
  Shape shape_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_LAYOUT_H_
