#include "engine/backends/cuda/layout.h"

namespace tandem::cuda {

ChannelSizes ChannelSizesOf(const Shape& shape) {
  ChannelSizes sizes;
  if (shape.rank() > 0) sizes.outer = shape[0];
  if (shape.rank() > 1) sizes.channels = shape[1];
  for (int i = 2; i < shape.rank(); ++i) sizes.inner *= shape[i];
  return sizes;
}

Layout Layout::ChannelsLast(DType dtype, Shape shape) {
  const ChannelSizes sizes = ChannelSizesOf(shape);
  const bool same = sizes.channels <= 1 || sizes.inner <= 1;
  return {!same, dtype, std::move(shape)};
}

}  // namespace tandem::cuda
