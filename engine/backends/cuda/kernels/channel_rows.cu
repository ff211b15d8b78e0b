#include "engine/backends/cuda/kernels/channel_rows.h"

#include "engine/backends/cuda/kernels/channel_sums.h"

namespace tandem::cuda {
namespace {

// Returns the division of sums.
Division DivideSums(const ChannelRows& sizes) {
  Division division;
  WithPackOf(sizes, [&](auto pack) {
    constexpr int kPack = sizeof(pack.items) / sizeof(pack.items[0]);
    division = Divide(sizes.rows, sizes.channels, kPack, Threads(kSumThreads),
                      kSumBlocks * sizes.multiprocessors, kSumTilePacks);
  });
  return division;
}

}  // namespace

int64_t PartialBytes(const ChannelRows& sizes) {
  return static_cast<int64_t>(sizeof(float)) * 2 * sizes.channels * DivideSums(sizes).grid.x;
}

int64_t TicketBytes(const ChannelRows& sizes) {
  return static_cast<int64_t>(sizeof(unsigned)) * kTicketsOfTile * DivideSums(sizes).grid.y;
}

}  // namespace tandem::cuda
