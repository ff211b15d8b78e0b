#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "gtest/gtest.h"

// The keys of remembered algorithms: different problems, versions and GPUs must have different keys.

namespace tandem::cuda {
namespace {

// Expects that each single change of `spec` gives another text.
template <typename Spec>
void ExpectAllUnlike(const Spec& spec, const std::vector<std::function<void(Spec&)>>& changes) {
  std::set<std::string> texts = {spec.ToString()};
  for (size_t i = 0; i < changes.size(); ++i) {
    Spec changed = spec;
    changes[i](changed);
    const std::string text = changed.ToString();
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_TRUE(texts.insert(text).second) << "change " << i << ": " << text;
  }
  EXPECT_EQ(spec.ToString(), Spec(spec).ToString());
}

TEST(SpecsTest, UnlikeConvolutionsHaveUnlikeTexts) {
  ConvolutionSpec spec;
  spec.n = 8;
  spec.c = spec.k = 64;
  spec.h = spec.w = spec.out_h = spec.out_w = 28;
  spec.kernel_h = spec.kernel_w = 3;
  spec.pad_h = spec.pad_w = 1;
  using Change = std::function<void(ConvolutionSpec&)>;
  ExpectAllUnlike<ConvolutionSpec>(spec, {Change([](auto& s) { s.kind = ConvolutionKind::kGradInput; }),
                                          Change([](auto& s) { s.kind = ConvolutionKind::kGradWeight; }),
                                          Change([](auto& s) { s.n = 9; }),
                                          Change([](auto& s) { s.c = 32; }),
                                          Change([](auto& s) { s.h = 27; }),
                                          Change([](auto& s) { s.w = 27; }),
                                          Change([](auto& s) { s.k = 32; }),
                                          Change([](auto& s) { s.kernel_h = 5; }),
                                          Change([](auto& s) { s.kernel_w = 5; }),
                                          Change([](auto& s) { s.out_h = 14; }),
                                          Change([](auto& s) { s.out_w = 14; }),
                                          Change([](auto& s) { s.stride_h = 2; }),
                                          Change([](auto& s) { s.stride_w = 2; }),
                                          Change([](auto& s) { s.pad_h = 0; }),
                                          Change([](auto& s) { s.pad_w = 0; }),
                                          Change([](auto& s) { s.dilation_h = 2; }),
                                          Change([](auto& s) { s.dilation_w = 2; }),
                                          Change([](auto& s) { s.groups = 2; }),
                                          Change([](auto& s) { s.type = DType::kBFloat16; }),
                                          Change([](auto& s) { s.type = DType::kFloat16; }),
                                          Change([](auto& s) { s.bias = true; }),
                                          Change([](auto& s) { s.relu = true; })});
}

TEST(SpecsTest, UnlikeProductsHaveUnlikeTexts) {
  GemmSpec spec;
  spec.m = 128;
  spec.n = 500;
  spec.k = 800;
  spec.batch = 2;
  using Change = std::function<void(GemmSpec&)>;
  ExpectAllUnlike<GemmSpec>(
      spec, {Change([](auto& s) { s.m = 127; }), Change([](auto& s) { s.n = 499; }),
             Change([](auto& s) { s.k = 799; }), Change([](auto& s) { s.transpose_a = true; }),
             Change([](auto& s) { s.transpose_b = true; }), Change([](auto& s) { s.row_a = 900; }),
             Change([](auto& s) { s.row_b = 900; }), Change([](auto& s) { s.row_c = 900; }),
             Change([](auto& s) { s.batch = 3; }), Change([](auto& s) { s.stride_a = 1 << 20; }),
             Change([](auto& s) { s.stride_b = 1 << 20; }), Change([](auto& s) { s.stride_c = 1 << 20; }),
             Change([](auto& s) { s.type = DType::kBFloat16; }),
             Change([](auto& s) { s.result_type = DType::kBFloat16; }), Change([](auto& s) { s.beta = 1; }),
             Change([](auto& s) { s.bias = true; })});
  // Missing rows and strides mean dense.
  GemmSpec dense = spec;
  dense.row_a = 800;
  dense.row_b = dense.row_c = 500;
  dense.stride_a = 128 * 800;
  EXPECT_EQ(dense.ToString(), spec.ToString());
}

TEST(SpecsTest, PlansAreRememberedByAllThatDecides) {
  const std::string key = PlanKey("cudnn", 91900, "NVIDIA H200", {}, "forward 8", 1 << 20);
  EXPECT_EQ(key, "cudnn 91900 NVIDIA H200 forward 8 within 1048576");
  const std::set<std::string> keys = {
      key,
      PlanKey("cublasLt", 91900, "NVIDIA H200", {}, "forward 8", 1 << 20),
      PlanKey("cudnn", 91901, "NVIDIA H200", {}, "forward 8", 1 << 20),
      PlanKey("cudnn", 91900, "NVIDIA A100", {}, "forward 8", 1 << 20),
      PlanKey("cudnn", 91900, "NVIDIA H200", {.allow_tf32 = true}, "forward 8", 1 << 20),
      PlanKey("cudnn", 91900, "NVIDIA H200", {}, "forward 9", 1 << 20),
      PlanKey("cudnn", 91900, "NVIDIA H200", {}, "forward 8", 1 << 21)};
  EXPECT_EQ(keys.size(), 7u);
}

}  // namespace
}  // namespace tandem::cuda
