// Sums over millions of numbers, and of numbers near the limits of float32, in each instruction set.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "gtest/gtest.h"

namespace tandem::cpu {
namespace {

// A long sum of equal numbers in single precision is off by a few parts in a thousand.
constexpr double kTolerance = 1e-5;

template <typename Check>
void ForEachIsa(const Check& check) {
  for (const Kernels* const* kernels = AllKernels(); *kernels != nullptr; ++kernels) {
    SCOPED_TRACE((*kernels)->isa);
    check(**kernels);
  }
}

void ExpectNear(double actual, double expected) {
  EXPECT_TRUE(std::abs(actual - expected) <= kTolerance * std::abs(expected))
      << actual << " instead of " << expected;
}

TEST(LongSumsTest, GradientOfABiasKeepsItsPrecision) {
  constexpr int64_t kBlocks = 3;
  constexpr int64_t kPositions = (1 << 17) + 5;
  const std::vector<float> dy(kBlocks * kPositions * kBlock, 0.1f);
  ForEachIsa([&](const Kernels& kernels) {
    float dbias = 0;
    kernels.grad_bias(kBlocks, 1, kPositions, dy.data(), &dbias, 0, 1);
    ExpectNear(dbias, static_cast<double>(0.1f) * kBlocks * kPositions * kBlock);
  });
}

TEST(LongSumsTest, GradientOfABiasInTilesKeepsItsPrecision) {
  if (BestTileKernels() == nullptr) GTEST_SKIP() << "this processor has no instructions for bfloat16";
  TileConv conv;
  conv.blocks = 1;
  conv.out_blocks = 1;
  conv.out_height = 129;
  conv.out_width = 127;
  constexpr uint16_t kTenth = 0x3dcd;  // 0.10009765625
  const std::vector<uint16_t> dy(conv.out_height * conv.out_width * kTileElements, kTenth);
  std::vector<float> dbias(kTileChannels);
  BestTileKernels()->grad_bias(conv, dy.data(), kTileChannels, dbias.data(), 0, 1);
  for (const float sum : dbias) {
    ExpectNear(sum, 0.10009765625 * static_cast<double>(conv.out_height * conv.out_width * kTileSamples));
  }
}

// The numbers of each channel alternate between -0.3 and 0.3.
TEST(LongSumsTest, StatisticsOfChannelsKeepTheirPrecision) {
  constexpr int64_t kPositions = (1 << 18) + 2;
  constexpr double kSquare = static_cast<double>(0.3f) * 0.3f;
  for (const bool channel_lanes : {false, true}) {
    for (const int64_t lanes : {1, 8, 16}) {
      if (lanes == (channel_lanes ? 1 : 8)) continue;
      SCOPED_TRACE(lanes);
      const ChannelSizes sizes = {.outer = 1,
                                  .groups = 1,
                                  .positions = kPositions * 16 / (lanes == 1 ? 1 : 16),
                                  .lanes = lanes,
                                  .channel_lanes = channel_lanes,
                                  .samples = channel_lanes ? 1 : lanes,
                                  .channels = channel_lanes ? lanes : 1};
      std::vector<float> x(sizes.positions * lanes);
      for (int64_t i = 0; i < sizes.positions; ++i) {
        for (int64_t lane = 0; lane < lanes; ++lane) {
          x[i * lanes + lane] = (i + (channel_lanes ? 0 : lane)) % 2 == 0 ? 0.3f : -0.3f;
        }
      }
      const std::vector<float> dy(x.size(), 0.1f);
      const std::vector<float> zeros(lanes, 0.0f);
      const double count = static_cast<double>(x.size()) / (channel_lanes ? static_cast<double>(lanes) : 1);
      ForEachIsa([&](const Kernels& kernels) {
        std::vector<double> partial(kChannelPartial);
        kernels.channel_moments(sizes, x.data(), partial.data(), 0, 1);
        EXPECT_TRUE(std::abs(partial[0]) <= kTolerance) << partial[0];
        ExpectNear(partial[kPartialLanes], kSquare * count);
        const ChannelAffine affine = {.center = zeros.data(), .factor = zeros.data(), .offset = zeros.data()};
        const ChannelGradArrays arrays = {.x = x.data(), .dy = dy.data()};
        kernels.channel_grad_sums(sizes, affine, arrays, partial.data(), 0, 1);
        ExpectNear(partial[0], static_cast<double>(0.1f) * count);
      });
    }
  }
}

// A norm that limits gradients is finite if the gradients are.
TEST(LongSumsTest, SquaresMayExceedSinglePrecision) {
  for (const int64_t count : {1, 300, 5000}) {
    const std::vector<float> x(count, -3e25f);
    ForEachIsa([&](const Kernels& kernels) {
      ExpectNear(kernels.sum_of_squares(x.data(), 0, count),
                 static_cast<double>(3e25f) * 3e25f * static_cast<double>(count));
    });
  }
  std::vector<float> x(5000, 1.0f);
  x[1234] = std::numeric_limits<float>::infinity();
  x[4321] = std::numeric_limits<float>::quiet_NaN();
  ForEachIsa([&](const Kernels& kernels) {
    EXPECT_EQ(kernels.sum_of_squares(x.data(), 0, 4000), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(kernels.sum_of_squares(x.data(), 0, 5000)));
  });
}

// The lanes past the last number of a row do not count.
TEST(LongSumsTest, SoftmaxOfTheLeastNumbers) {
  for (const int64_t count : {1, 3, 17}) {
    const std::vector<float> x(count, std::numeric_limits<float>::lowest());
    ForEachIsa([&](const Kernels& kernels) {
      std::vector<float> y(count);
      ExpectNear(kernels.softmax_row(x.data(), count, y.data()).sum, static_cast<double>(count));
      for (const float share : y) ExpectNear(share, 1 / static_cast<double>(count));
    });
  }
}

}  // namespace
}  // namespace tandem::cpu
