#include "engine/backends/cuda/kernels/emulator.h"

#include <numeric>
#include <vector>

#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/reduce.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

TANDEM_KERNEL SumKernel(int64_t n, const int64_t* x, int64_t* sums) {
  int64_t sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
  sum = ReduceBlock(sum, int64_t{0}, Sum());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

TEST(EmulatorTest, BlocksReduce) {
  for (const int threads : {32, 64, 256, 1024}) {
    constexpr int64_t kN = 1000;
    std::vector<int64_t> x(3 * kN);
    std::iota(x.begin(), x.end(), 1);
    std::vector<int64_t> sums(3, -1);
    Launch(SumKernel, {3}, threads, nullptr, kN, x.data(), sums.data());
    for (int64_t b = 0; b < 3; ++b) {
      EXPECT_EQ(sums[b], kN * (2 * b * kN + kN + 1) / 2) << threads << " threads, block " << b;
    }
  }
}

// An ended thread blocks no other. Lanes see the values of the other lanes in their warp.
TANDEM_KERNEL NeighboursKernel(int n, int* left, uint32_t* votes) {
  __shared__ int values[128];
  values[threadIdx.x] = static_cast<int>(threadIdx.x) * 10;
  __syncthreads();
  const int seen = values[(threadIdx.x + 1) % blockDim.x];
  if (threadIdx.x >= static_cast<unsigned>(n)) return;
  const int mine = seen / 10 - 1;  // -1 in the last thread.
  left[threadIdx.x] = __shfl_up_sync(0xffffffffu, mine, 1);
  votes[threadIdx.x] = __ballot_sync(0xffffffffu, threadIdx.x % 2 == 0);
  __syncthreads();
}

TEST(EmulatorTest, LanesSeeEachOther) {
  std::vector<int> left(64, -7);
  std::vector<uint32_t> votes(64, 0);
  Launch(NeighboursKernel, {1}, 128, nullptr, 64, left.data(), votes.data());
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(left[i], i % 32 == 0 ? i : i - 1);
    EXPECT_EQ(votes[i], 0x55555555u);
  }
}

TEST(EmulatorTest, GridsHaveThreeDimensions) {
  std::vector<int> seen(2 * 3 * 4, 0);
  int* counts = seen.data();
  emulator::Run({4, 3, 2}, 1,
                [counts] { ++counts[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x]; });
  for (const int count : seen) EXPECT_EQ(count, 1);
}

TANDEM_KERNEL CountKernel(Grid grid, int* counts) {
  for (BlockLoop block(grid); block.exists(); block.Next()) ++counts[block.z * grid.y + block.y];
}

TEST(EmulatorTest, LaunchesLoopOverGridsThatCudaRefuses) {
  constexpr unsigned kMany = 70000;
  for (const Grid& grid : {Grid{1, kMany, 1}, Grid{1, 1, kMany}}) {
    std::vector<int> counts(kMany, 0);
    Launch(CountKernel, grid, 1, nullptr, counts.data());
    EXPECT_EQ(counts, std::vector<int>(kMany, 1)) << grid.y;
  }
}

TEST(EmulatorTest, TilesAreLaunchedWithinCudasGrids) {
  constexpr unsigned kMany = 150000;
  unsigned tiles = 0;
  ForTiles({.grid = {1, kMany}}, MostBlocks(), [&](const Division& part) {
    EXPECT_EQ(part.first_tile, tiles);
    EXPECT_LE(part.grid.y, kMostGridY);
    tiles += part.grid.y;
  });
  EXPECT_EQ(tiles, kMany);
}

TANDEM_KERNEL EmptyKernel() {}

TEST(EmulatorDeathTest, GridsThatCudaRefusesAreFound) {
  EXPECT_DEATH(Launch(EmptyKernel, {1, 70000, 1}, 1, nullptr), "CUDA refuses");
}

TANDEM_KERNEL DisagreeKernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __shfl_sync(0xffffffffu, 1, 0);
    if (threadIdx.x == 32) __syncthreads();
    if (threadIdx.x != 32) __shfl_sync(0xffffffffu, 1, 0);
  }
}

TEST(EmulatorDeathTest, ThreadsThatWaitForEachOtherForEverAreFound) {
  EXPECT_DEATH(Launch(DisagreeKernel, {1}, 64, nullptr), "different barriers");
}

}  // namespace
}  // namespace tandem::cuda
