#ifndef TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_

#include "engine/backends/cuda/kernels/image.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Returns the kernels' view of images [N, C, H, W].
ImageSizes ImageSizesOf(const Shape& shape, bool channels_last);

// Returns the layout of images: channels last or plain.
inline Layout ImageLayout(DType dtype, const Shape& shape, bool channels_last) {
  return channels_last ? Layout::ChannelsLast(dtype, shape) : Layout::Plain(dtype, shape);
}

// Returns whether a reader of the images `id` wants channels last. A convolution does. So does a reader with
// another input of the same shape that already has channels last.
bool IsWantedChannelsLast(Lowering& lowering, ValueId id);

// Returns whether a node should write its output `made` with channels last, given its input's layout `from`.
// True if `from` has channels last. Also true if the two layouts of `from` are the same memory order, and the
// readers of `made` want channels last.
bool MakesChannelsLast(Lowering& lowering, const Layout& from, ValueId made);

// Returns whether the value is only needed as rows of numbers: all its readers are reshapes, perhaps after
// element-wise functions. Gradients of element-wise functions do not count as readers.
bool IsFlattened(const Lowering& lowering, ValueId id);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_IMAGE_H_
