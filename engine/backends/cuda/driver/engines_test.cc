#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/backends/cuda/driver/convolution_check.h"
#include "engine/backends/cuda/driver/cudnn_api.h"
#include "engine/backends/cuda/driver/cudnn_graph.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/backends/cuda/driver/measure.h"
#include "gtest/gtest.h"

// Compares the check of engines with all of their results. Needs a GPU.

namespace tandem::cuda {
namespace {

constexpr int64_t kMostWorkspaceBytes = int64_t{64} << 20;

class EnginesTest : public testing::TestWithParam<ConvolutionSpec> {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> devices = CountDevices();
    if (!devices.ok() || *devices == 0) GTEST_SKIP() << "no GPU: " << devices.status();
    ASSERT_TRUE(UseDevice(0).ok());
    absl::StatusOr<std::unique_ptr<OwnedStream>> stream = OwnedStream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  // Random numbers, on the device and on the host.
  DeviceMemory OnDevice(int64_t count) {
    absl::StatusOr<DeviceMemory> memory = RandomNumbers(DType::kFloat32, count, stream_->get());
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }
  std::vector<float> OnHost(const DeviceMemory& memory) {
    std::vector<float> numbers(memory.bytes() / sizeof(float));
    EXPECT_TRUE(Copy(numbers.data(), memory.data(), memory.bytes(), stream_->get()).ok());
    EXPECT_TRUE(stream_->Synchronize().ok()) << stream_->Synchronize();
    return numbers;
  }

  std::unique_ptr<OwnedStream> stream_;
};

TEST_P(EnginesTest, TheCheckTellsTf32FromFloat32) {
  const ConvolutionSpec& s = GetParam();
  const absl::StatusOr<const CudnnApi*> api = CudnnApi::Load();
  ASSERT_TRUE(api.ok()) << api.status();
  const auto handle = std::make_shared<CudnnHandle>(**api);
  ASSERT_EQ((*api)->create(&handle->handle), CUDNN_STATUS_SUCCESS);
  const auto graph = ConvolutionGraph::Create(handle, s, /*with_bias=*/false, /*with_relu=*/false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto engines = (*graph)->Propose();
  ASSERT_TRUE(engines.ok()) << engines.status();

  const auto x = [&] { return OnDevice(s.n * s.h * s.w * s.c); };
  const auto weight = [&] { return OnDevice(s.k * s.kernel_h * s.kernel_w * s.c); };
  const auto y = [&] { return OnDevice(s.n * s.out_h * s.out_w * s.k); };
  std::vector<float> loop_x = OnHost(x()), loop_weight = OnHost(weight()), loop_y = OnHost(y());
  ConvolveByLoops(s, loop_x.data(), loop_weight.data(), loop_y.data(), nullptr);
  const std::vector<float>& expected = s.kind == ConvolutionKind::kForward     ? loop_y
                                       : s.kind == ConvolutionKind::kGradInput ? loop_x
                                                                               : loop_weight;
  double largest = 0;
  for (const float number : expected) largest = std::max<double>(largest, std::fabs(number));
  absl::StatusOr<DeviceMemory> workspace = DeviceMemory::Allocate(kMostWorkspaceBytes);
  ASSERT_TRUE(workspace.ok()) << workspace.status();

  const ConvolutionCheck check(s);
  int tested = 0;
  for (const ConvolutionGraph::Engine& engine : *engines) {
    if (FitOf(engine.notes, s.type, {}) == EngineFit::kRefused) continue;
    const absl::StatusOr<Descriptor> plan = (*graph)->PlanFor(engine);
    if (!plan.ok()) continue;
    const absl::StatusOr<int64_t> bytes = ConvolutionGraph::WorkspaceBytes(*plan);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    if (*bytes > kMostWorkspaceBytes) continue;
    const DeviceMemory device_x = x(), device_weight = weight(), device_y = y();
    const absl::Status ran = (*graph)->Execute(*plan, device_x.data(), device_weight.data(), device_y.data(),
                                               nullptr, workspace->data(), stream_->get());
    ASSERT_TRUE(ran.ok()) << engine.word << ": " << ran;
    const DeviceMemory& written = s.kind == ConvolutionKind::kForward     ? device_y
                                  : s.kind == ConvolutionKind::kGradInput ? device_x
                                                                          : device_weight;
    const std::vector<float> actual = OnHost(written);
    double error = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      const double difference = std::fabs(static_cast<double>(actual[i]) - expected[i]);
      if (!(difference <= error)) error = difference;
    }
    const absl::StatusOr<double> checked = check.Error(written.data(), *stream_);
    ASSERT_TRUE(checked.ok()) << engine.word << ": " << checked.status();
    std::printf("%s: all numbers are off by at most %.2g of the largest; the check says %.2g\n",
                engine.word.c_str(), error / largest, *checked);
    // A product in TF32 has an error of 4e-4.
    EXPECT_EQ(*checked <= MostConvolutionError(DType::kFloat32, /*allow_tf32=*/false),
              error <= 2e-5 * largest)
        << engine.word << ": " << *checked << " and " << error / largest;
    ++tested;
  }
  EXPECT_GT(tested, 0) << "of " << engines->size() << " engines";
}

std::vector<ConvolutionSpec> Specs() {
  std::vector<ConvolutionSpec> specs;
  const auto add = [&](int64_t n, int64_t c, int64_t size, int64_t k, int64_t kernel, int64_t stride,
                       int64_t pad) {
    const int64_t out = (size + 2 * pad - kernel) / stride + 1;
    for (const ConvolutionKind kind :
         {ConvolutionKind::kForward, ConvolutionKind::kGradInput, ConvolutionKind::kGradWeight}) {
      specs.push_back({.kind = kind,
                       .n = n,
                       .c = c,
                       .h = size,
                       .w = size,
                       .k = k,
                       .kernel_h = kernel,
                       .kernel_w = kernel,
                       .out_h = out,
                       .out_w = out,
                       .stride_h = stride,
                       .stride_w = stride,
                       .pad_h = pad,
                       .pad_w = pad});
    }
  };
  add(12, 1, 28, 20, 5, 1, 0);
  add(16, 1, 28, 64, 3, 1, 1);
  add(4, 64, 28, 64, 3, 1, 1);
  add(4, 64, 28, 128, 3, 2, 1);
  add(4, 64, 28, 128, 1, 2, 0);
  return specs;
}

INSTANTIATE_TEST_SUITE_P(Specs, EnginesTest, testing::ValuesIn(Specs()));

}  // namespace
}  // namespace tandem::cuda
