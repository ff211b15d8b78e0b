#include "engine/backends/cuda/driver/convolution_check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/backends/cuda/driver/measure.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

class ConvolutionSpecTest : public testing::TestWithParam<ConvolutionSpec> {
 protected:
  void SetUp() override {
    const ConvolutionSpec& s = GetParam();
    stream_ = *OwnedStream::Create();
    x_ = *RandomNumbers(s.type, s.n * s.h * s.w * s.c, stream_->get());
    weight_ = *RandomNumbers(s.type, s.k * s.kernel_h * s.kernel_w * (s.c / s.groups), stream_->get());
    y_ = *RandomNumbers(s.type, s.n * s.out_h * s.out_w * s.k, stream_->get());
    bias_ = *RandomNumbers(s.type, s.k, stream_->get());
  }

  const DeviceMemory& results() const {
    return GetParam().kind == ConvolutionKind::kForward     ? y_
           : GetParam().kind == ConvolutionKind::kGradInput ? x_
                                                            : weight_;
  }

  // The emulation's memory is the host's.
  double ErrorOfLoops() {
    ConvolveByLoops(GetParam(), x_.data(), weight_.data(), y_.data(), bias_.data());
    const absl::StatusOr<double> error = ConvolutionCheck(GetParam()).Error(results().data(), *stream_);
    EXPECT_TRUE(error.ok()) << error.status();
    return error.value_or(std::numeric_limits<double>::infinity());
  }

  // Leaves each number the 10 bits of TF32.
  static void RoundToTf32(const DeviceMemory& numbers) {
    auto* bits = reinterpret_cast<uint32_t*>(numbers.data());
    for (int64_t i = 0; i < numbers.bytes() / 4; ++i) bits[i] = (bits[i] + 0x1000) & ~uint32_t{0x1fff};
  }

  std::unique_ptr<OwnedStream> stream_;
  DeviceMemory x_, weight_, y_, bias_;
};

TEST_P(ConvolutionSpecTest, ExactSumsPass) {
  EXPECT_LE(ErrorOfLoops(), GetParam().type == DType::kFloat32 ? 1e-6 : 5e-3);
}

TEST_P(ConvolutionSpecTest, ProductsInTf32Fail) {
  if (GetParam().type != DType::kFloat32) return;
  RoundToTf32(x_);
  RoundToTf32(weight_);
  RoundToTf32(y_);
  const double error = ErrorOfLoops();
  EXPECT_GT(error, MostConvolutionError(DType::kFloat32, /*allow_tf32=*/false));
  EXPECT_LE(error, MostConvolutionError(DType::kFloat32, /*allow_tf32=*/true));
}

TEST_P(ConvolutionSpecTest, NumbersThatNobodyWroteFail) {
  std::memset(results().data(), 0xff, results().bytes());  // NaN in every type.
  const absl::StatusOr<double> error = ConvolutionCheck(GetParam()).Error(results().data(), *stream_);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_FALSE(*error <= MostConvolutionError(GetParam().type, /*allow_tf32=*/true));
}

// An engine with indices of 32 bits leaves the second half of 2^32 results unwritten. Almost all results are
// 0, because they lie in the padding.
TEST(ConvolutionCheckTest, ResultsBeyond32BitsAreCompared) {
  const ConvolutionSpec spec = {.n = 1,
                                .c = 1,
                                .h = 1,
                                .w = 1,
                                .k = 1,
                                .kernel_h = 1,
                                .kernel_w = 1,
                                .out_h = 1 << 16,
                                .out_w = 1 << 16,
                                .pad_h = 1 << 15,
                                .pad_w = 1 << 15,
                                .type = DType::kBFloat16};
  constexpr int64_t kHalf = int64_t{2} << 31;  // In bytes.
  constexpr int64_t kPiece = int64_t{1} << 20;
  // Zeros without memory of their own, then the same piece of NaN over and over.
  void* const zeros = mmap(nullptr, 2 * kHalf, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  auto* const results = static_cast<std::byte*>(zeros);
  const auto stream = OwnedStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  const ConvolutionCheck check(spec);
  const absl::StatusOr<double> right = check.Error(results, **stream);
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(*right, 0);
  const int file = memfd_create("nan", 0);
  ASSERT_GE(file, 0);
  const std::vector<char> nan(kPiece, '\xff');
  ASSERT_EQ(write(file, nan.data(), kPiece), kPiece);
  for (int64_t at = kHalf; at < 2 * kHalf; at += kPiece) {
    ASSERT_NE(mmap(results + at, kPiece, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0), MAP_FAILED);
  }
  const absl::StatusOr<double> wrong = check.Error(results, **stream);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_EQ(*wrong, std::numeric_limits<double>::infinity());
  close(file);
  munmap(zeros, 2 * kHalf);
}

std::vector<ConvolutionSpec> Specs() {
  std::vector<ConvolutionSpec> specs;
  for (const ConvolutionKind kind :
       {ConvolutionKind::kForward, ConvolutionKind::kGradInput, ConvolutionKind::kGradWeight}) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      ConvolutionSpec spec = {.kind = kind,
                              .n = 3,
                              .c = 8,
                              .h = 9,
                              .w = 10,
                              .k = 12,
                              .kernel_h = 3,
                              .kernel_w = 5,
                              .out_h = 5,
                              .out_w = 4,
                              .stride_h = 2,
                              .stride_w = 2,
                              .pad_h = 1,
                              .pad_w = 1,
                              .groups = 2,
                              .type = type,
                              .bias = kind == ConvolutionKind::kForward};
      specs.push_back(spec);
      spec.stride_h = spec.stride_w = spec.groups = 1;
      spec.dilation_h = 2;
      spec.out_h = 7;
      spec.out_w = 8;
      spec.relu = spec.bias;
      specs.push_back(spec);
    }
  }
  return specs;
}

INSTANTIATE_TEST_SUITE_P(Specs, ConvolutionSpecTest, testing::ValuesIn(Specs()));

}  // namespace
}  // namespace tandem::cuda
