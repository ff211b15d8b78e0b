#include "engine/backends/cuda/kernels/resample.h"

#include "engine/backends/cuda/kernels/image_place.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// With lanes in units of T.
template <typename T>
void RunShift(ImageSizes x_sizes, ImageSizes y_sizes, int top, int left, const void* x_data, void* y_data,
              Stream stream) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  ForEach(y_sizes.elements(), stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<1>(y_sizes, i);
    const int row = at.row - top;
    const int column = at.column - left;
    const bool inside = row >= 0 && row < x_sizes.height && column >= 0 && column < x_sizes.width;
    y[i] = inside ? x[ElementOf(x_sizes, at.outer, row, column, at.lane)] : T{};
  });
}

// Adds share * items to sums. A share of 0 adds nothing, even of NaN.
template <typename T, int kPack>
__device__ __forceinline__ void AddShare(float share, const T* from, float* sums) {
  if (share == 0) return;
  const auto items = *reinterpret_cast<const Pack<T, kPack>*>(from);
#pragma unroll
  for (int k = 0; k < kPack; ++k) sums[k] += share * ToFloat(items.items[k]);
}

template <typename T, int kPack>
__device__ __forceinline__ void StoreSums(const float* sums, T* to) {
  Pack<T, kPack> result;
#pragma unroll
  for (int k = 0; k < kPack; ++k) result.items[k] = To<T>(sums[k]);
  Store(result, reinterpret_cast<Pack<T, kPack>*>(to));
}

template <typename T, int kPack>
void RunResize(const Resizing& how, const T* x, T* y, Stream stream) {
  ForEach(how.y.elements() / kPack, stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<kPack>(how.y, i);
    const ResizeTap row = how.rows[at.row];
    const ResizeTap column = how.columns[at.column];
    const T* first = x + ElementOf(how.x, at.outer, row.first, 0, at.lane);
    const T* second = x + ElementOf(how.x, at.outer, row.second, 0, at.lane);
    const int left = column.first * how.x.lanes;
    const int right = column.second * how.x.lanes;
    float sums[kPack] = {};
    AddShare<T, kPack>((1 - row.share) * (1 - column.share), first + left, sums);
    AddShare<T, kPack>((1 - row.share) * column.share, first + right, sums);
    AddShare<T, kPack>(row.share * (1 - column.share), second + left, sums);
    AddShare<T, kPack>(row.share * column.share, second + right, sums);
    StoreSums<T, kPack>(sums, y + i * kPack);
  });
}

// Returns the share of source row or column `from` in the tap.
__device__ __forceinline__ float ShareOf(const ResizeTap& tap, int from) {
  return (tap.first == from ? 1 - tap.share : 0) + (tap.second == from ? tap.share : 0);
}

template <typename T, int kPack>
void RunResizeGrad(const Resizing& how, const T* dy, T* dx, Stream stream) {
  ForEach(how.x.elements() / kPack, stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<kPack>(how.x, i);
    const TapRange rows = how.row_ranges[at.row];
    const TapRange columns = how.column_ranges[at.column];
    float sums[kPack] = {};
    for (int p = rows.begin; p < rows.end; ++p) {
      const float share = ShareOf(how.rows[p], at.row);
      for (int q = columns.begin; q < columns.end; ++q) {
        AddShare<T, kPack>(share * ShareOf(how.columns[q], at.column),
                           dy + ElementOf(how.y, at.outer, p, q, at.lane), sums);
      }
    }
    StoreSums<T, kPack>(sums, dx + i * kPack);
  });
}

}  // namespace

void Shift(const ImageSizes& x_sizes, const ImageSizes& y_sizes, int top, int left, int element_bytes,
           const void* x, void* y, Stream stream) {
  const int row_bytes = x_sizes.lanes * element_bytes;
  const auto in_units = [&](auto unit) {
    using T = decltype(unit);
    ImageSizes from = x_sizes;
    ImageSizes to = y_sizes;
    from.lanes = to.lanes = row_bytes / static_cast<int>(sizeof(T));
    RunShift<T>(from, to, top, left, x, y, stream);
  };
  if (row_bytes % 16 == 0) return in_units(Pack<uint32_t, 4>());
  if (row_bytes % 8 == 0) return in_units(uint64_t());
  if (row_bytes % 4 == 0) return in_units(uint32_t());
  if (row_bytes % 2 == 0) return in_units(uint16_t());
  return in_units(uint8_t());
}

void Resize(const Resizing& how, DType type, const void* x, void* y, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    WithPack<T>(how.x.lanes, [&](auto pack) {
      RunResize<T, decltype(pack)::value>(how, static_cast<const T*>(x), static_cast<T*>(y), stream);
    });
  });
}

void ResizeGrad(const Resizing& how, DType type, const void* dy, void* dx, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    WithPack<T>(how.x.lanes, [&](auto pack) {
      RunResizeGrad<T, decltype(pack)::value>(how, static_cast<const T*>(dy), static_cast<T*>(dx), stream);
    });
  });
}

}  // namespace tandem::cuda
