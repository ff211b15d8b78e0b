#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/tensor/half.h"
#include "gtest/gtest.h"

// Compares the emulation's libraries with numbers that were computed by hand.

namespace tandem::cuda {
namespace {

std::vector<float> Multiply(const GemmSpec& spec, const std::vector<float>& a, const std::vector<float>& b,
                            std::vector<float> c, const std::vector<float>& bias = {}) {
  const auto blas = CreateBlas({});
  EXPECT_TRUE(blas.ok()) << blas.status();
  const auto gemm = (*blas)->Plan(spec, 0);
  EXPECT_TRUE(gemm.ok()) << gemm.status();
  EXPECT_TRUE((*gemm)->Run(a.data(), b.data(), c.data(), bias.data(), nullptr, nullptr).ok());
  return c;
}

TEST(EmulatedBlasTest, MultipliesWithBias) {
  const GemmSpec spec = {.m = 2, .n = 2, .k = 3, .bias = true};
  EXPECT_EQ(Multiply(spec, {1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 1, -4}, {9, 9, 9, 9}, {0.5f, 1}),
            (std::vector<float>{4.5f, -9, 10.5f, -18}));
}

TEST(EmulatedBlasTest, TakesTransposesRowsAndScales) {
  // A is [k, m] in memory with rows of 3, B is [n, k].
  const GemmSpec spec = {.m = 2,
                         .n = 1,
                         .k = 2,
                         .transpose_a = true,
                         .transpose_b = true,
                         .row_a = 3,
                         .row_c = 2,
                         .alpha = 2,
                         .beta = 1};
  EXPECT_EQ(Multiply(spec, {1, 2, 0, 3, 4, 0}, {1, 10}, {100, 7, 200, 7}),
            (std::vector<float>{162, 7, 284, 7}));
}

TEST(EmulatedBlasTest, TakesABatch) {
  const GemmSpec spec = {.m = 1, .n = 1, .k = 2, .batch = 2, .stride_c = 2};
  EXPECT_EQ(Multiply(spec, {1, 2, 3, 4}, {1, 1, 2, 2}, {0, 0, 0, 0}), (std::vector<float>{3, 0, 14, 0}));
}

TEST(EmulatedBlasTest, RefusesWhatMakesNoSense) {
  const auto blas = CreateBlas({});
  ASSERT_TRUE(blas.ok());
  EXPECT_FALSE((*blas)->Plan({.m = 1, .n = 4, .k = 1, .row_c = 3}, 0).ok());
  EXPECT_FALSE((*blas)->Plan({.m = 1, .n = 4, .k = 1, .type = DType::kInt32}, 0).ok());
}

// A 3x3 image with a single channel, a 2x2 kernel with padding 1 and stride 2.
constexpr ConvolutionSpec kSmall = {.n = 1,
                                    .c = 1,
                                    .h = 3,
                                    .w = 3,
                                    .k = 1,
                                    .kernel_h = 2,
                                    .kernel_w = 2,
                                    .out_h = 2,
                                    .out_w = 2,
                                    .stride_h = 2,
                                    .stride_w = 2,
                                    .pad_h = 1,
                                    .pad_w = 1};

void Convolve(const ConvolutionSpec& spec, void* x, void* weight, void* y, const float* bias) {
  const auto dnn = CreateDnn({});
  ASSERT_TRUE(dnn.ok()) << dnn.status();
  const auto convolution = (*dnn)->Plan(spec, 0);
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  EXPECT_EQ((*convolution)->adds_bias(), spec.bias);
  EXPECT_TRUE((*convolution)->Run(x, weight, y, bias, nullptr, nullptr).ok());
}

TEST(EmulatedDnnTest, Forward) {
  ConvolutionSpec spec = kSmall;
  spec.bias = true;
  spec.relu = true;
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> weight = {1, 10, 100, -1000};
  std::vector<float> y(4, 7);
  const float bias = 1;
  Convolve(spec, x.data(), weight.data(), y.data(), &bias);
  // Windows: [0 0; 0 1], [0 0; 2 3], [0 4; 0 7], [5 6; 8 9].
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0, 0}));
  spec.relu = false;
  Convolve(spec, x.data(), weight.data(), y.data(), &bias);
  EXPECT_EQ(y, (std::vector<float>{-999, -2799, -6959, -8134}));
}

TEST(EmulatedDnnTest, Gradients) {
  ConvolutionSpec spec = kSmall;
  spec.kind = ConvolutionKind::kGradInput;
  std::vector<float> x(9, 7);
  std::vector<float> weight = {1, 10, 100, 1000};
  std::vector<float> y = {1, 2, 3, 4};
  Convolve(spec, x.data(), weight.data(), y.data(), nullptr);
  EXPECT_EQ(x, (std::vector<float>{1000, 200, 2000, 30, 4, 40, 3000, 400, 4000}));
  spec.kind = ConvolutionKind::kGradWeight;
  x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Convolve(spec, x.data(), weight.data(), y.data(), nullptr);
  EXPECT_EQ(weight, (std::vector<float>{20, 36, 36, 64}));
}

TEST(EmulatedDnnTest, GroupsKeepTheirChannels) {
  const ConvolutionSpec spec = {.n = 1,
                                .c = 2,
                                .h = 1,
                                .w = 1,
                                .k = 4,
                                .kernel_h = 1,
                                .kernel_w = 1,
                                .out_h = 1,
                                .out_w = 1,
                                .groups = 2};
  std::vector<float> x = {1, 10};
  std::vector<float> weight = {1, 2, 3, 4};
  std::vector<float> y(4);
  Convolve(spec, x.data(), weight.data(), y.data(), nullptr);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 30, 40}));
}

TEST(EmulatedDnnTest, TakesOtherTypes) {
  ConvolutionSpec spec = kSmall;
  spec.kind = ConvolutionKind::kGradWeight;
  spec.type = DType::kBFloat16;
  std::vector<BFloat16> x(9, BFloat16(1));
  std::vector<BFloat16> y(4, BFloat16(1.0078125f));
  std::vector<BFloat16> weight(4);
  Convolve(spec, x.data(), weight.data(), y.data(), nullptr);
  const float expected[] = {1.0078125f, 2.015625f, 2.015625f, 4.03125f};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float>(weight[i]), expected[i]);
  EXPECT_EQ(spec.ToString(),
            "grad_weight 1x3x3x1 kernel 1x2x2 to 2x2 stride 2x2 pad 1x1 dilation 1x1 groups 1 bfloat16");
}

TEST(EmulatedDnnTest, RefusesWhatMakesNoSense) {
  const auto dnn = CreateDnn({});
  ASSERT_TRUE(dnn.ok());
  ConvolutionSpec spec = kSmall;
  spec.out_w = 3;
  EXPECT_FALSE((*dnn)->Plan(spec, 0).ok());
}

}  // namespace
}  // namespace tandem::cuda
