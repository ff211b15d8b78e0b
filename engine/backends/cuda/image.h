#ifndef TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_

#include "engine/backends/cuda/kernels/image.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Returns the kernels' view of images [N, C, H, W].
ImageSizes ImageSizesOf(const Shape& shape, bool channels_last);

// Returns a layout of images: channels last or plain.
inline Layout ImageLayout(DType dtype, const Shape& shape, bool channels_last) {
  return channels_last ? Layout::ChannelsLast(dtype, shape) : Layout::Plain(dtype, shape);
}

// Returns whether the readers of the images `id` want channels last. Convolutions do, and readers of other
// images of the same shape with channels last.
bool IsWantedChannelsLast(Lowering& lowering, ValueId id);

// Returns whether a node's output `made` should have channels last, for images in the layout `from`. It
// should if the images have channels last, or if both layouts are equal and the readers of `made` want it.
bool MakesChannelsLast(Lowering& lowering, const Layout& from, ValueId made);

// Returns whether a reshape reads the value as rows of numbers, perhaps after element-wise functions.
bool IsFlattened(const Lowering& lowering, ValueId id);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_
