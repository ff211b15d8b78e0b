#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_ROWS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {

// How blocks share a tensor [rows, channels], of which threads take packs of 16 bytes (or, where channels do
// not divide into such, single ones): a block has a piece of the rows and a tile of the packs of a row, and
// each of its threads one pack, of several rows at once.
struct Division {
  int tile = 1;  // Packs.
  int rows = 1;  // At once.
  int64_t piece = 1;
  Grid grid;
};

inline constexpr int kTilePacks = 32;
inline constexpr int kRowsInFlight = 4;  // That a thread loads before it computes.

// About `blocks` blocks, fewer where they would have nothing to do.
inline Division Divide(int64_t rows, int64_t channels, int pack, int threads, int blocks) {
  const auto parts = [](int64_t n, int64_t part) { return (n + part - 1) / part; };
  const int64_t packs = channels / pack;
  const int64_t tiles = parts(packs, kTilePacks);
  Division division;
  division.tile = static_cast<int>(parts(packs, tiles));
  division.rows = threads / division.tile;
  const int64_t most = parts(rows, int64_t{division.rows} * kRowsInFlight);
  division.piece = parts(rows, std::clamp<int64_t>(blocks / tiles, 1, most));
  division.grid = {static_cast<unsigned>(parts(rows, division.piece)),
                   static_cast<unsigned>(parts(packs, division.tile))};
  return division;
}

// What a thread of a block has.
template <int kPack>
struct ShareOf {
  __device__ ShareOf(const Division& division, int64_t all_rows, int64_t channels)
      : column(threadIdx.x % division.tile),
        row(threadIdx.x / division.tile),
        channel((static_cast<int64_t>(blockIdx.y) * division.tile + column) * kPack),
        begin(blockIdx.x * division.piece),
        end(begin + division.piece < all_rows ? begin + division.piece : all_rows),
        works(row < division.rows && channel < channels) {}

  int column;       // Of the block's tile.
  int row;          // Of those at once.
  int64_t channel;  // The first.
  int64_t begin;    // Of the block's rows.
  int64_t end;
  bool works;
};

// Calls `function(pack type)` of T: as many elements as are 16 bytes, or 1.
template <typename T, typename Function>
void WithPack(int64_t channels, const Function& function) {
  constexpr int kWide = 16 / sizeof(T);
  if (channels % kWide == 0) {
    function(Pack<T, kWide>());
  } else {
    function(Pack<T, 1>());
  }
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_ROWS_H_
