#include "engine/backends/cuda/kernels/rows.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// In units of T, which divide all numbers of `copy`.
template <typename T>
void Run(const RowCopy& copy, const void* x_data, void* y_data, Stream stream) {
  constexpr int64_t kBytes = sizeof(T);
  const int64_t units = copy.row_bytes / kBytes;
  const int64_t extent1 = copy.extents[1];
  const int64_t extent2 = copy.extents[2];
  const int64_t x0 = copy.x_strides[0] / kBytes;
  const int64_t x1 = copy.x_strides[1] / kBytes;
  const int64_t x2 = copy.x_strides[2] / kBytes;
  const int64_t y0 = copy.y_strides[0] / kBytes;
  const int64_t y1 = copy.y_strides[1] / kBytes;
  const int64_t y2 = copy.y_strides[2] / kBytes;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  ForEach(copy.extents[0] * extent1 * extent2 * units, stream, [=] __device__(int64_t i) {
    const int64_t row = i / units;
    const int64_t unit = i - row * units;
    const int64_t outer = row / extent2;
    const int64_t i2 = row - outer * extent2;
    const int64_t i0 = outer / extent1;
    const int64_t i1 = outer - i0 * extent1;
    y[i0 * y0 + i1 * y1 + i2 * y2 + unit] = x[i0 * x0 + i1 * x1 + i2 * x2 + unit];
  });
}

}  // namespace

void CopyRows(const RowCopy& copy, const void* x, void* y, Stream stream) {
  // The lowest bit that is set in any of them gives the largest unit that divides all.
  uint64_t bits =
      static_cast<uint64_t>(copy.row_bytes) | reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y);
  for (int d = 0; d < 3; ++d) {
    if (copy.extents[d] > 1) bits |= static_cast<uint64_t>(copy.x_strides[d] | copy.y_strides[d]);
  }
  if (bits % 16 == 0) return Run<Pack<uint32_t, 4>>(copy, x, y, stream);
  if (bits % 8 == 0) return Run<uint64_t>(copy, x, y, stream);
  if (bits % 4 == 0) return Run<uint32_t>(copy, x, y, stream);
  if (bits % 2 == 0) return Run<uint16_t>(copy, x, y, stream);
  return Run<uint8_t>(copy, x, y, stream);
}

}  // namespace tandem::cuda
