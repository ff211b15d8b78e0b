#include "engine/backends/cuda/driver/cudnn_graph.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

// Tests cuDNN's answers about graphs for a described GPU. They need the library, but no GPU.

#ifdef TANDEM_ASAN
// cuDNN 9.19 leaks the descriptors that its heuristics create for a graph, with their contents. Its engines
// request handles of cuBLASLt. Without a GPU, cublasLtCreate fails and leaks its memory, also in a program
// that calls nothing else.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcudnn_heuristic.so\nleak:cublasLtCreate\n";
}
#endif

namespace tandem::cuda {
namespace {

constexpr char kH200[] = R"json({
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
  "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
  "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 9013,
  "isTccDriver": 0, "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "l2CacheSize": 62914560, "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000,
  "totalGlobalMem": 150754820096, "cudaDeviceId": 0, "memBusWidth": 6144})json";

class ConvolutionGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const CudnnApi*> api = CudnnApi::Load();
    ASSERT_TRUE(api.ok()) << api.status();
    absl::StatusOr<Descriptor> gpu = DescribeGpu(**api, kH200);
    ASSERT_TRUE(gpu.ok()) << "cuDNN " << (*api)->get_version() << " wants other words: " << gpu.status();
    gpu_ = *std::move(gpu);
    handle_ = std::make_shared<CudnnHandle>(**api);
  }

  absl::StatusOr<std::unique_ptr<ConvolutionGraph>> Graph(const ConvolutionSpec& spec) {
    return ConvolutionGraph::Create(handle_, spec, spec.bias, spec.relu, &gpu_);
  }

  // Expects that some proposed engine fits, has a plan and needs at most `cap` bytes. Its word finds it
  // again.
  void ExpectPlans(const ConvolutionSpec& spec, int64_t cap) {
    SCOPED_TRACE(spec.ToString());
    const auto graph = Graph(spec);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto engines = (*graph)->Propose();
    ASSERT_TRUE(engines.ok()) << engines.status();
    const std::string* first = nullptr;
    for (const ConvolutionGraph::Engine& engine : *engines) {
      if (FitOf(engine.notes, spec.type, {}) != EngineFit::kFits) continue;
      const absl::StatusOr<Descriptor> plan = (*graph)->PlanFor(engine);
      if (!plan.ok()) continue;
      const absl::StatusOr<int64_t> bytes = ConvolutionGraph::WorkspaceBytes(*plan);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      if (*bytes > cap) continue;
      first = &engine.word;
      break;
    }
    ASSERT_NE(first, nullptr) << "none of " << engines->size();
    const auto again = (*graph)->EngineOf(*first);
    ASSERT_TRUE(again.ok()) << *first << ": " << again.status();
    EXPECT_EQ(again->word, *first);
    EXPECT_TRUE((*graph)->PlanFor(*again).ok());
  }

  std::shared_ptr<CudnnHandle> handle_;
  Descriptor gpu_;
};

ConvolutionSpec Square(int64_t n, int64_t c, int64_t size, int64_t k, int64_t kernel, int64_t stride,
                       int64_t pad, int64_t dilation = 1, int64_t groups = 1) {
  const int64_t out = (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  return {.n = n,
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
          .pad_w = pad,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .groups = groups};
}

TEST_F(ConvolutionGraphTest, EveryKindOfConvolutionHasPlans) {
  for (ConvolutionSpec spec :
       {Square(128, 1, 28, 20, 5, 1, 0), Square(128, 20, 12, 50, 5, 1, 0), Square(256, 1, 28, 64, 3, 1, 1),
        Square(256, 64, 28, 64, 3, 1, 1), Square(256, 64, 28, 128, 3, 2, 1),
        Square(256, 64, 28, 128, 1, 2, 0), Square(256, 3, 32, 32, 5, 1, 2),
        Square(2, 16, 9, 16, 3, 1, 1, 1, 16), Square(2, 16, 9, 32, 3, 1, 2, 2),
        Square(2, 24, 9, 48, 3, 1, 1, 1, 3), Square(5, 7, 6, 11, 3, 1, 1)}) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      spec.type = type;
      for (const ConvolutionKind kind :
           {ConvolutionKind::kForward, ConvolutionKind::kGradInput, ConvolutionKind::kGradWeight}) {
        spec.kind = kind;
        ExpectPlans(spec, int64_t{32} << 20);
      }
    }
  }
}

TEST_F(ConvolutionGraphTest, BiasAndReluAreFused) {
  for (ConvolutionSpec spec : {Square(128, 1, 28, 20, 5, 1, 0), Square(256, 64, 28, 64, 3, 1, 1)}) {
    spec.bias = true;
    for (const DType type : {DType::kFloat32, DType::kBFloat16}) {
      spec.type = type;
      for (const bool relu : {false, true}) {
        spec.relu = relu;
        ExpectPlans(spec, int64_t{32} << 20);
      }
    }
  }
}

TEST(EngineFitTest, StrictFloat32AddsProductsInFloat32) {
  for (const auto note : {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_FFT,
                          CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}) {
    EXPECT_EQ(FitOf({note}, DType::kFloat32, {}), EngineFit::kRefused) << note;
    EXPECT_EQ(FitOf({note}, DType::kFloat32, {.allow_tf32 = true}), EngineFit::kFits) << note;
    EXPECT_EQ(FitOf({note}, DType::kBFloat16, {}), EngineFit::kFits) << note;
  }
  EXPECT_EQ(FitOf({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, DType::kFloat32, {.allow_tf32 = true}),
            EngineFit::kRefused);
  EXPECT_EQ(FitOf({}, DType::kFloat32, {}), EngineFit::kFits);
}

TEST(EngineFitTest, LargeTilesAndOtherBitsAreRefused) {
  for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const auto note :
         {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) {
      EXPECT_EQ(FitOf({note}, type, {.allow_tf32 = true}), EngineFit::kRefused) << note;
    }
    EXPECT_EQ(FitOf({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, type, {}), EngineFit::kFits);
    EXPECT_EQ(FitOf({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, type, {.deterministic = true}),
              EngineFit::kRefused);
  }
}

TEST(EngineFitTest, SumsInFewerBitsAreTheLastResort) {
  const NumericalNotes notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                                CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  EXPECT_EQ(FitOf(notes, DType::kFloat16, {}), EngineFit::kLastResort);
  EXPECT_EQ(FitOf(notes, DType::kBFloat16, {}), EngineFit::kLastResort);
  EXPECT_EQ(FitOf(notes, DType::kFloat32, {}), EngineFit::kRefused);
}

TEST_F(ConvolutionGraphTest, WordsOfNoEngineAreRefused) {
  const auto graph = Graph(Square(4, 16, 8, 16, 3, 1, 1));
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const char* word : {"", "eng", "engine1", "eng1_k2", "eng1_k=3", "eng999999"}) {
    EXPECT_FALSE((*graph)->EngineOf(word).ok()) << word;
  }
}

}  // namespace
}  // namespace tandem::cuda
