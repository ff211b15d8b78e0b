#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_PLACE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_PLACE_H_

#include <cstdint>
#include <type_traits>

#include "engine/backends/cuda/kernels/image.h"
#include "engine/backends/cuda/kernels/launch.h"

namespace tandem::cuda {

// A place in images.
struct ImagePlace {
  int64_t outer;
  int row;
  int column;
  int lane;
};

// Returns the place of the i-th pack of `kPack` lanes.
template <int kPack>
__device__ __forceinline__ ImagePlace PlaceOfPack(const ImageSizes& sizes, int64_t i) {
  const uint32_t packs = static_cast<uint32_t>(sizes.lanes) / kPack;
  const uint32_t of_row = packs * static_cast<uint32_t>(sizes.width);
  const uint32_t of_image = of_row * static_cast<uint32_t>(sizes.height);
  const int64_t outer = i / of_image;
  uint32_t rest = static_cast<uint32_t>(i - outer * of_image);
  const uint32_t row = rest / of_row;
  rest -= row * of_row;
  const uint32_t column = rest / packs;
  return {outer, static_cast<int>(row), static_cast<int>(column),
          static_cast<int>((rest - column * packs) * kPack)};
}

// Returns the index of the element at (row, column, lane) of image `outer`.
__device__ __forceinline__ int64_t ElementOf(const ImageSizes& sizes, int64_t outer, int row, int column,
                                             int lane) {
  return ((outer * sizes.height + row) * sizes.width + column) * sizes.lanes + lane;
}

// Calls `function` with an integral_constant of the lanes in a pack: the largest number that divides them and
// fits into 16 bytes.
template <typename T, typename Function>
void WithPack(int lanes, const Function& function) {
  if constexpr (sizeof(T) <= 2) {
    if (lanes % 8 == 0) return function(std::integral_constant<int, 8>());
  }
  if (lanes % 4 == 0) return function(std::integral_constant<int, 4>());
  if (lanes % 2 == 0) return function(std::integral_constant<int, 2>());
  return function(std::integral_constant<int, 1>());
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_PLACE_H_
