#ifndef TANDEM_ENGINE_BACKENDS_CUDA_LAYOUT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_LAYOUT_H_

#include <cstdint>
#include <utility>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tandem::cuda {

// A tensor [outer, channels, inner] as layouts see it: samples, channels and positions.
struct ChannelSizes {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
  int64_t elements() const { return outer * channels * inner; }
};
// Of a shape [N, C, ...]; [N] has one channel and one position.
ChannelSizes ChannelSizesOf(const Shape& shape);

// How the elements of a tensor lie in memory: always dense. A value.
class Layout {
 public:
  // Row-major.
  static Layout Plain(DType dtype, Shape shape) { return {false, dtype, std::move(shape)}; }
  // [N, C, ...] lies as [N, ..., C]: what cuDNN's and our kernels for images want, for weights [O, I, H, W]
  // too. Plain where that is the same.
  static Layout ChannelsLast(DType dtype, Shape shape);

  bool plain() const { return !channels_last_; }
  bool channels_last() const { return channels_last_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }

  // The same places for elements of another type.
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
