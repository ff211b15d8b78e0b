#ifndef TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_

#include "engine/backends/cuda/kernels/image.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// [N, C, H, W] as kernels for images see it.
ImageSizes ImageSizesOf(const Shape& shape, bool channels_last);

// A layout of images: channels last or plain.
inline Layout ImageLayout(DType dtype, const Shape& shape, bool channels_last) {
  return channels_last ? Layout::ChannelsLast(dtype, shape) : Layout::Plain(dtype, shape);
}

// Whether what reads the images `id` wants them channels last: convolutions, and what reads others of their
// shape that are.
bool IsWantedChannelsLast(Lowering& lowering, ValueId id);

// Whether what a node makes of images in the layout `from`, the value `made`, is to be channels last: where
// they are, or where they are the same either way and what reads `made` wants it.
bool MakesChannelsLast(Lowering& lowering, const Layout& from, ValueId made);

// Whether the value is read as rows of numbers, by a reshape, perhaps behind functions of its elements.
bool IsFlattened(const Lowering& lowering, ValueId id);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_
