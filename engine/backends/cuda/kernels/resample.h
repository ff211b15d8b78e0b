#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RESAMPLE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RESAMPLE_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/image.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y = x moved down by `top` and right by `left`, which may be negative. Places without x become zero.
// Elements have any type of `element_bytes`.
void Shift(const ImageSizes& x_sizes, const ImageSizes& y_sizes, int top, int left, int element_bytes,
           const void* x, void* y, Stream stream);

// The sources of a row or column of a resized image: (1 - share) source[first] + share source[second].
struct ResizeTap {
  int first = 0;
  int second = 0;
  float share = 0;
};
// Rows or columns of the result between `begin` and `end`. They include all readers of a source row or
// column.
struct TapRange {
  int begin = 0;
  int end = 0;
};

// The rule of a resizing. All tables are on the device.
struct Resizing {
  ImageSizes x;
  ImageSizes y;
  const ResizeTap* rows = nullptr;          // By row of y.
  const ResizeTap* columns = nullptr;       // By column of y.
  const TapRange* row_ranges = nullptr;     // By row of x. For the gradient.
  const TapRange* column_ranges = nullptr;  // By column of x. For the gradient.
};

// Tensors have `type`: float32, bfloat16 or float16.
void Resize(const Resizing& how, DType type, const void* x, void* y, Stream stream);
void ResizeGrad(const Resizing& how, DType type, const void* dy, void* dx, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RESAMPLE_H_
