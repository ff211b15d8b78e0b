#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_SUMS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "engine/backends/cuda/kernels/channel_rows.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {

// The division of a tensor [rows, channels] among blocks. Threads read packs of 16 bytes, or single elements
// if packs do not divide the channels. A block has a piece of the rows and a tile of the packs of a row. Each
// thread has a single pack, of several rows at a time.
struct Division {
  int tile = 1;  // Packs.
  int rows = 1;  // At a time.
  int64_t piece = 1;
  unsigned first_tile = 0;  // Of the launch.
  Grid grid;
};

inline constexpr int kTilePacks = 32;
// The packs of a tile for sums. The last block of a tile adds up the other blocks' sums, so more tiles
// shorten its work.
inline constexpr int kSumTilePacks = 8;
inline constexpr int kTicketsOfTile = 2;
inline constexpr int kRowsInFlight = 4;  // Rows that a thread loads before it computes.

// Returns a division into about `blocks` blocks, fewer if they would have no work, with tiles of at most
// `tile_packs` packs.
inline Division Divide(int64_t rows, int64_t channels, int pack, int threads, int blocks,
                       int tile_packs = kTilePacks) {
  const auto parts = [](int64_t n, int64_t part) { return (n + part - 1) / part; };
  const int64_t packs = channels / pack;
  const int64_t tiles = parts(packs, tile_packs);
  Division division;
  division.tile = static_cast<int>(parts(packs, tiles));
  division.rows = threads / division.tile;
  const int64_t most = parts(rows, int64_t{division.rows} * kRowsInFlight);
  const int64_t pieces = std::min<uint64_t>(std::clamp<int64_t>(blocks / tiles, 1, most), MostBlocks());
  division.piece = parts(rows, pieces);
  division.grid = {static_cast<unsigned>(parts(rows, division.piece)),
                   static_cast<unsigned>(parts(packs, division.tile))};
  return division;
}

// Calls `launch(division)` for each necessary launch, with its own tiles and at most `most_blocks` blocks.
template <typename Function>
void ForTiles(const Division& whole, uint64_t most_blocks, const Function& launch) {
  const uint64_t most_tiles = std::min(most_blocks / whole.grid.x, kMostGridY);
  InParts(whole.grid.y, most_tiles, [&](unsigned first, unsigned tiles) {
    Division part = whole;
    part.first_tile = first;
    part.grid.y = tiles;
    launch(part);
  });
}

// A thread's share of a block.
template <int kPack>
struct ShareOf {
  __device__ ShareOf(const Division& division, unsigned piece, unsigned tile, int64_t all_rows,
                     int64_t channels)
      : column(threadIdx.x % division.tile),
        row(threadIdx.x / division.tile),
        piece(piece),
        first(static_cast<int64_t>(tile) * division.tile * kPack),
        channel(first + column * kPack),
        begin(piece * division.piece),
        end(begin + division.piece < all_rows ? begin + division.piece : all_rows),
        works(row < division.rows && channel < channels) {}

  int column;       // Of the block's tile.
  int row;          // Of the rows at a time.
  unsigned piece;   // Of the block.
  int64_t first;    // The first channel of the block's tile.
  int64_t channel;  // The first channel of the thread.
  int64_t begin;    // Of the block's rows.
  int64_t end;
  bool works;
};

// Calls `function(pack)` for T: with packs of 16 bytes, or of a single element.
template <typename T, typename Function>
void WithPack(int64_t channels, const Function& function) {
  constexpr int kWide = 16 / sizeof(T);
  if (channels % kWide == 0) {
    function(Pack<T, kWide>());
  } else {
    function(Pack<T, 1>());
  }
}

// Blocks of a multiprocessor for sums: few and large, because the last block adds up the sums of the others.
inline constexpr int kSumThreads = 512;
inline constexpr int kSumBlocks = 2;

template <typename T, int kPack>
__device__ __forceinline__ Pack<T, kPack> LoadPack(const void* tensor, int64_t first) {
  return *reinterpret_cast<const Pack<T, kPack>*>(static_cast<const T*>(tensor) + first);
}
template <typename T, int kPack>
__device__ __forceinline__ void StorePack(const Pack<T, kPack>& pack, void* tensor, int64_t first) {
  Store(pack, reinterpret_cast<Pack<T, kPack>*>(static_cast<T*>(tensor) + first));
}

// Adds up the threads' sums over the block's rows. The sum j of column i is at [j * kSumThreads + i] of the
// result. All threads must call it, and must have read the result before another call.
template <int kCount>
__device__ const float* SumRows(const float (&sums)[kCount], const Division& division, int row) {
  __shared__ float all[kCount * kSumThreads];
  float* own = all + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kCount; ++j) own[j * kSumThreads] = sums[j];
  // Threads that a limit excluded.
  for (int i = threadIdx.x + blockDim.x; i < kSumThreads; i += blockDim.x) {
    for (int j = 0; j < kCount; ++j) all[j * kSumThreads + i] = 0;
  }
  __syncthreads();
  if (kWarpSize % division.tile == 0) {
    // A warp for each sum: all numbers of a lane belong to the same column.
    const int lane = threadIdx.x % kWarpSize;
    for (int j = threadIdx.x / kWarpSize; j < kCount; j += blockDim.x / kWarpSize) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kSumThreads; i += kWarpSize) sum += all[j * kSumThreads + i + lane];
      for (int mask = kWarpSize / 2; mask >= division.tile; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
      }
      if (lane < division.tile) all[j * kSumThreads + lane] = sum;
    }
    __syncthreads();
    return all;
  }
  int half = 1;
  while (2 * half < division.rows) half *= 2;
  for (; half > 0; half /= 2) {
    if (row < half && row + half < division.rows) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) own[j * kSumThreads] += own[j * kSumThreads + half * division.tile];
    }
    __syncthreads();
  }
  return all;
}

// Writes the block's sums, as SumRows returns them, to partials [pieces, 2, channels].
template <int kPack>
__device__ void WritePartials(const float* all, const ShareOf<kPack>& share, const Division& division,
                              int64_t channels, float* partials) {
  const int width = division.tile * kPack;
  const int64_t first = share.first;
  for (int i = threadIdx.x; i < 2 * width; i += blockDim.x) {
    const int which = i / width;
    const int channel = i % width;
    if (first + channel < channels) {
      partials[(share.piece * 2 + which) * channels + first + channel] =
          all[(which * kPack + channel % kPack) * kSumThreads + channel / kPack];
    }
  }
}

// Adds up the partials of all pieces, always in the same order. The result is like that of SumRows.
template <int kPack>
__device__ const float* AddPartials(const ShareOf<kPack>& share, const Division& division, int64_t channels,
                                    const float* partials) {
  float totals[2 * kPack] = {};
  if (share.works) {
#pragma unroll 4
    for (unsigned piece = share.row; piece < gridDim.x; piece += division.rows) {
      const float* partial = partials + piece * 2 * channels + share.channel;
      const auto one = LoadPack<float, kPack>(partial, 0);
      const auto other = LoadPack<float, kPack>(partial, channels);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        totals[j] += one.items[j];
        totals[kPack + j] += other.items[j];
      }
    }
  }
  return SumRows(totals, division, share.row);
}

// Computes two sums over the block's rows for each channel of its tile, and writes them to partials [pieces,
// 2, channels]. `terms` defines what is summed. Terms::Channels holds a thread's numbers for its channels.
// Its Load(first) reads a row's elements, and its Add adds the row's terms.
template <int kPack, typename Terms>
__device__ void SumPiece(const ShareOf<kPack>& share, const Division& division, int64_t channels,
                         const Terms& terms, float* partials) {
  float sums[2 * kPack] = {};
  if (share.works) {
    const typename Terms::Channels of(terms, share.channel, share.begin * channels + share.channel);
    constexpr int kRows = Terms::kRows;
    for (int64_t row = share.begin + share.row; row < share.end; row += kRows * division.rows) {
      typename Terms::Items items[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int64_t at = row + i * division.rows;
        if (at < share.end) items[i] = terms.Load(at * channels + share.channel);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int64_t at = row + i * division.rows;
        if (at < share.end) terms.Add(items[i], of, at * channels + share.channel, sums);
      }
    }
  }
  WritePartials(SumRows(sums, division, share.row), share, division, channels, partials);
}

// For each piece separately.
template <int kPack, typename Terms>
TANDEM_KERNEL __launch_bounds__(kSumThreads)
    SumPiecesKernel(Grid grid, int64_t rows, int64_t channels, Division division, Terms terms,
                    float* partials) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    SumPiece(ShareOf<kPack>(division, block.x, block.y, rows, channels), division, channels, terms, partials);
  }
}

// Over all rows. Calls finish(channel, sums) once for each channel.
template <int kPack, typename Terms, typename Finish>
TANDEM_KERNEL __launch_bounds__(kSumThreads) SumKernel(int64_t rows, int64_t channels, Division division,
                                                       Terms terms, SumScratch scratch, Finish finish) {
  const unsigned tile = division.first_tile + blockIdx.y;
  const ShareOf<kPack> share(division, blockIdx.x, tile, rows, channels);
  SumPiece(share, division, channels, terms, scratch.partials);
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(scratch.tickets + tile, 1u) == gridDim.x - 1;
    if (is_last) scratch.tickets[tile] = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();

  const float* all = AddPartials(share, division, channels, scratch.partials);
  const int width = division.tile * kPack;
  const int64_t first = share.first;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float* sum = all + i % kPack * kSumThreads + i / kPack;
    if (first + i < channels) finish(first + i, sum[0], sum[kPack * kSumThreads]);
  }
}

template <int kPack, typename Terms, typename Finish>
void RunSums(const ChannelRows& sizes, const Terms& terms, const SumScratch& scratch, const Finish& finish,
             Stream stream) {
  const Division whole = Divide(sizes.rows, sizes.channels, kPack, Threads(kSumThreads),
                                kSumBlocks * sizes.multiprocessors, kSumTilePacks);
  ForTiles(whole, MostBlocks(), [&](const Division& division) {
    Launch(SumKernel<kPack, Terms, Finish>, division.grid, Threads(kSumThreads), stream, sizes.rows,
           sizes.channels, division, terms, scratch, finish);
  });
}

// For pieces of `piece` rows each, to partials [pieces, 2, channels].
template <int kPack, typename Terms>
void RunPieceSums(const ChannelRows& sizes, int64_t piece, const Terms& terms, float* partials,
                  Stream stream) {
  Division division = Divide(sizes.rows, sizes.channels, kPack, Threads(kSumThreads), 1, kSumTilePacks);
  division.piece = piece;
  division.grid.x = static_cast<unsigned>(sizes.rows / piece);
  Launch(SumPiecesKernel<kPack, Terms>, division.grid, Threads(kSumThreads), stream, sizes.rows,
         sizes.channels, division, terms, partials);
}

// Calls `function(pack)` with a pack of the type, as wide as the channels allow.
template <typename Function>
void WithPackOf(const ChannelRows& sizes, const Function& function) {
  WithNumber(sizes.type, [&](auto number) { WithPack<decltype(number)>(sizes.channels, function); });
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_SUMS_H_
