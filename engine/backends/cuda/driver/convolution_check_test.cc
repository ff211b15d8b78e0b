#include "engine/backends/cuda/driver/convolution_check.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/backends/cuda/driver/measure.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

class ConvolutionCheckTest : public testing::TestWithParam<ConvolutionSpec> {
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

TEST_P(ConvolutionCheckTest, ExactSumsPass) {
  EXPECT_LE(ErrorOfLoops(), GetParam().type == DType::kFloat32 ? 1e-6 : 5e-3);
}

TEST_P(ConvolutionCheckTest, ProductsInTf32Fail) {
  if (GetParam().type != DType::kFloat32) return;
  RoundToTf32(x_);
  RoundToTf32(weight_);
  RoundToTf32(y_);
  const double error = ErrorOfLoops();
  EXPECT_GT(error, MostConvolutionError(DType::kFloat32, /*allow_tf32=*/false));
  EXPECT_LE(error, MostConvolutionError(DType::kFloat32, /*allow_tf32=*/true));
}

TEST_P(ConvolutionCheckTest, NumbersThatNobodyWroteFail) {
  std::memset(results().data(), 0xff, results().bytes());  // NaN in every type.
  const absl::StatusOr<double> error = ConvolutionCheck(GetParam()).Error(results().data(), *stream_);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_FALSE(*error <= MostConvolutionError(GetParam().type, /*allow_tf32=*/true));
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

INSTANTIATE_TEST_SUITE_P(Specs, ConvolutionCheckTest, testing::ValuesIn(Specs()));

}  // namespace
}  // namespace tandem::cuda
