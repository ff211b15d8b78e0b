#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RESAMPLE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RESAMPLE_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/image.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y = x moved down by `top` and to the right by `left`, which may be negative: zero where x has nothing. Of
// elements of any type of `element_bytes`.
void Shift(const ImageSizes& x_sizes, const ImageSizes& y_sizes, int top, int left, int element_bytes,
           const void* x, void* y, Stream stream);

// What a row (or column) of a resized image is made of: (1 - share) source[first] + share source[second].
struct ResizeTap {
  int first = 0;
  int second = 0;
  float share = 0;
};
// Rows (or columns) of the result, of which all that read one of the source are between `begin` and `end`.
struct TapRange {
  int begin = 0;
  int end = 0;
};

// How images are resized. All tables are on the device.
struct Resizing {
  ImageSizes x;
  ImageSizes y;
  const ResizeTap* rows = nullptr;          // By row of y.
  const ResizeTap* columns = nullptr;       // By column of y.
  const TapRange* row_ranges = nullptr;     // By row of x; of the gradient.
  const TapRange* column_ranges = nullptr;  // By column of x; of the gradient.
};

// Tensors are of `type`, float32, bfloat16 or float16.
void Resize(const Resizing& how, DType type, const void* x, void* y, Stream stream);
void ResizeGrad(const Resizing& how, DType type, const void* dy, void* dx, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RESAMPLE_H_
