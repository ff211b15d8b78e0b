#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_PATCHES_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_PATCHES_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// The pieces of images [n, h, w, c] that a convolution multiplies with its kernel. Each position of the
// result [n, out_h, out_w] has a row [kernel_h, kernel_w, c], followed by zeros up to `width` elements.
struct PatchSizes {
  int64_t n = 0, h = 0, w = 0, c = 0;
  int64_t out_h = 0, out_w = 0;
  int64_t kernel_h = 0, kernel_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t width = 0;  // A multiple of 8.
  int64_t rows() const { return n * out_h * out_w; }
};

// Images, patches and positions have less than 2^31 elements.
// Writes the patches of x to `patches`, [rows, width], both of `type`: float32, bfloat16 or float16.
void MakePatches(const PatchSizes& sizes, DType type, const void* x, void* patches, Stream stream);

// The reverse: writes to each element of x the sum of the elements of `patches` that MakePatches copies from
// it.
void FoldPatches(const PatchSizes& sizes, DType type, const void* patches, void* x, Stream stream);

// Copies rows of `columns` elements of `type` to rows of `width` elements, padded with zeros.
void PadRows(int64_t rows, int64_t columns, int64_t width, DType type, const void* x, void* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_PATCHES_H_
