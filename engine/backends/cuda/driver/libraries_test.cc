#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/backends/cuda/driver/measure.h"
#include "engine/tensor/half.h"
#include "gtest/gtest.h"

// Compares the libraries on a GPU with loops in double precision on the host. Skipped without a GPU. The same
// tests run on the emulation.

namespace tandem::cuda {
namespace {

using Bytes = std::vector<std::byte>;

// Remembers the choices in a separate file, and prints it at the end.
class Plans : public testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv("TANDEM_CUDA_PLANS") != nullptr) return;
    path_ = testing::TempDir() + "/libraries_test_plans";
    std::remove(path_.c_str());
    setenv("TANDEM_CUDA_PLANS", path_.c_str(), 0);
  }
  void TearDown() override {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) std::cout << "chosen: " << line << '\n';
    if (!path_.empty()) std::remove(path_.c_str());
  }

 private:
  std::string path_;
};
const testing::Environment* const kPlans = testing::AddGlobalTestEnvironment(new Plans());

template <typename T>
void FillTyped(Bytes& bytes, uint32_t seed) {
  std::minstd_rand engine(seed);
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    const T number(static_cast<float>(engine() % 4001) / 2000.0f - 1.0f);
    std::memcpy(bytes.data() + i, &number, sizeof(T));
  }
}

Bytes Numbers(DType type, int64_t count, uint32_t seed) {
  Bytes bytes(count * SizeOf(type));
  if (type == DType::kBFloat16) {
    FillTyped<BFloat16>(bytes, seed);
  } else if (type == DType::kFloat16) {
    FillTyped<Float16>(bytes, seed);
  } else {
    FillTyped<float>(bytes, seed);
  }
  return bytes;
}

template <typename T>
double TypedAt(const Bytes& bytes, int64_t i) {
  T number;
  std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
  return static_cast<float>(number);
}

double At(DType type, const Bytes& bytes, int64_t i) {
  return type == DType::kBFloat16  ? TypedAt<BFloat16>(bytes, i)
         : type == DType::kFloat16 ? TypedAt<Float16>(bytes, i)
                                   : TypedAt<float>(bytes, i);
}

// Relative to the largest number, because sums cancel.
void ExpectNear(DType type, const Bytes& actual, const Bytes& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  const int64_t count = static_cast<int64_t>(actual.size()) / SizeOf(type);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(At(type, expected, i)));
  double worst = 0;
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = std::abs(At(type, actual, i) - At(type, expected, i));
    if (!(difference <= tolerance * largest)) {
      if (++wrong <= 3) {
        ADD_FAILURE() << "element " << i << " is " << At(type, actual, i) << ", not "
                      << At(type, expected, i);
      }
    }
    if (!(difference <= worst)) worst = difference;
  }
  EXPECT_EQ(wrong, 0) << "of " << count << " elements; the largest is " << largest << ", the worst is off by "
                      << worst;
}

double ToleranceOf(DType type) { return type == DType::kFloat32 ? 5e-5 : 1e-2; }

class LibrariesTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> devices = CountDevices();
    if (!devices.ok() || *devices == 0) GTEST_SKIP() << "no GPU: " << devices.status();
    ASSERT_TRUE(UseDevice(0).ok());
    absl::StatusOr<std::unique_ptr<OwnedStream>> stream = OwnedStream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  DeviceMemory OnDevice(const Bytes& bytes) {
    absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(std::max<int64_t>(bytes.size(), 1));
    EXPECT_TRUE(memory.ok()) << memory.status();
    EXPECT_TRUE(Copy(memory->data(), bytes.data(), bytes.size(), stream_->get()).ok());
    return *std::move(memory);
  }

  Bytes OnHost(const DeviceMemory& memory, size_t bytes) {
    Bytes copy(bytes);
    EXPECT_TRUE(Copy(copy.data(), memory.data(), bytes, stream_->get()).ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    return copy;
  }

  // Runs the work directly and as recorded work. Both must write the same result to `written`.
  void RunTwice(const std::function<absl::Status(Stream)>& run, const Bytes& before, DeviceMemory& written,
                DType type, const Bytes& expected, double tolerance) {
    const auto reset = [&] {
      ASSERT_TRUE(Copy(written.data(), before.data(), before.size(), stream_->get()).ok());
    };
    reset();
    const absl::Status status = run(stream_->get());
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(stream_->Synchronize().ok()) << stream_->Synchronize();
    ExpectNear(type, OnHost(written, before.size()), expected, tolerance);
    reset();
    ASSERT_TRUE(stream_->Synchronize().ok());
    ASSERT_TRUE(RecordedWork::Begin(stream_->get()).ok());
    EXPECT_TRUE(run(stream_->get()).ok());
    const absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::End(stream_->get());
    ASSERT_TRUE(work.ok()) << work.status();
    ASSERT_TRUE((*work)->Launch(stream_->get()).ok());
    ExpectNear(type, OnHost(written, before.size()), expected, tolerance);
  }

  std::unique_ptr<OwnedStream> stream_;
};

struct GemmCase {
  GemmSpec spec;
  LibraryOptions options = {};
};

class GemmTest : public LibrariesTest, public testing::WithParamInterface<GemmCase> {};

TEST_P(GemmTest, ComputesWhatLoopsCompute) {
  const GemmSpec& s = GetParam().spec;
  SCOPED_TRACE(s.ToString());
  const auto blas = CreateBlas(GetParam().options);
  ASSERT_TRUE(blas.ok()) << blas.status();
  const auto gemm = (*blas)->Plan(s, int64_t{32} << 20);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  const GemmPlaces places(s);
  const auto count = [&](int64_t rows, int64_t row, int64_t stride) {
    return (s.batch - 1) * stride + rows * row;
  };
  const Bytes a = Numbers(s.type, count(s.transpose_a ? s.k : s.m, places.row_a, places.stride_a), 1);
  const Bytes b = Numbers(s.type, count(s.transpose_b ? s.n : s.k, places.row_b, places.stride_b), 2);
  const Bytes before = Numbers(s.result_type, count(s.m, places.row_c, places.stride_c), 3);
  const Bytes bias = Numbers(s.result_type, s.n, 4);
  Bytes expected = before;
  MultiplyByLoops(s, a.data(), b.data(), expected.data(), bias.data());
  const DeviceMemory device_a = OnDevice(a);
  const DeviceMemory device_b = OnDevice(b);
  const DeviceMemory device_bias = OnDevice(bias);
  DeviceMemory c = OnDevice(before);
  const DeviceMemory workspace = OnDevice(Bytes((*gemm)->workspace_bytes()));
  const bool tf32 = GetParam().options.allow_tf32;
  RunTwice(
      [&](Stream stream) {
        return (*gemm)->Run(device_a.data(), device_b.data(), c.data(), s.bias ? device_bias.data() : nullptr,
                            workspace.data(), stream);
      },
      before, c, s.result_type, expected, tf32 ? 2e-3 : ToleranceOf(s.result_type));
}

std::vector<GemmCase> GemmCases() {
  std::vector<GemmSpec> shapes = {
      {.m = 128, .n = 500, .k = 800, .transpose_b = true, .bias = true},
      {.m = 128, .n = 10, .k = 500, .transpose_b = true, .bias = true},
      {.m = 128, .n = 500, .k = 10},
      {.m = 10, .n = 500, .k = 128, .transpose_a = true},
      {.m = 64, .n = 32, .k = 16, .transpose_a = true, .transpose_b = true},
      {.m = 7, .n = 13, .k = 5},
      {.m = 7, .n = 13, .k = 5, .transpose_a = true, .transpose_b = true, .bias = true},
      {.m = 1, .n = 33, .k = 17, .transpose_b = true},
      {.m = 33, .n = 1, .k = 17, .bias = true},
      {.m = 24, .n = 40, .k = 16, .transpose_b = true, .batch = 6},
      {.m = 5, .n = 7, .k = 3, .batch = 4, .alpha = 0.125},
      {.m = 8, .n = 16, .k = 24, .row_a = 32, .row_b = 24, .row_c = 40},
      {.m = 8, .n = 16, .k = 24, .batch = 3, .stride_a = 256, .stride_b = 512, .stride_c = 160, .beta = 1},
      {.m = 31, .n = 29, .k = 23, .alpha = 2, .beta = 0.5},
  };
  std::vector<GemmCase> cases;
  for (GemmSpec spec : shapes) {
    for (const auto& [type, result_type] :
         {std::pair(DType::kFloat32, DType::kFloat32), std::pair(DType::kBFloat16, DType::kBFloat16),
          std::pair(DType::kBFloat16, DType::kFloat32)}) {
      spec.type = type;
      spec.result_type = result_type;
      cases.push_back({spec});
    }
  }
  cases.push_back({shapes[0], {.allow_tf32 = true}});
  cases.push_back({shapes[0], {.deterministic = true}});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Specs, GemmTest, testing::ValuesIn(GemmCases()));

struct ConvolutionCase {
  ConvolutionSpec spec;
  LibraryOptions options = {};
};

class ConvolutionTest : public LibrariesTest, public testing::WithParamInterface<ConvolutionCase> {};

TEST_P(ConvolutionTest, ComputesWhatLoopsCompute) {
  ConvolutionSpec s = GetParam().spec;
  SCOPED_TRACE(s.ToString());
  const auto dnn = CreateDnn(GetParam().options);
  ASSERT_TRUE(dnn.ok()) << dnn.status();
  auto convolution = (*dnn)->Plan(s, int64_t{32} << 20);
  if (absl::IsUnimplemented(convolution.status()) && s.type != DType::kFloat32) {
    // As a lowering does.
    std::cout << "in float32: " << convolution.status() << '\n';
    s.type = DType::kFloat32;
    convolution = (*dnn)->Plan(s, int64_t{32} << 20);
  }
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  SCOPED_TRACE((*convolution)->algorithm());
  const bool is_forward = s.kind == ConvolutionKind::kForward;
  const bool is_grad_weight = s.kind == ConvolutionKind::kGradWeight;
  s.bias = (*convolution)->adds_bias();
  s.relu = (*convolution)->takes_relu();
  if (s.ToString() != GetParam().spec.ToString()) std::cout << "done: " << s.ToString() << '\n';
  const Bytes x = Numbers(s.type, s.n * s.h * s.w * s.c, 1);
  const Bytes weight = Numbers(s.type, s.k * s.kernel_h * s.kernel_w * (s.c / s.groups), 2);
  const Bytes y = Numbers(s.type, s.n * s.out_h * s.out_w * s.k, 3);
  const Bytes bias = Numbers(s.type, s.k, 4);
  const Bytes& before = is_forward ? y : is_grad_weight ? weight : x;
  Bytes loop_x = x;
  Bytes loop_weight = weight;
  Bytes loop_y = y;
  ConvolveByLoops(s, loop_x.data(), loop_weight.data(), loop_y.data(), bias.data());
  const Bytes& expected = is_forward ? loop_y : is_grad_weight ? loop_weight : loop_x;
  DeviceMemory device_x = OnDevice(x);
  DeviceMemory device_weight = OnDevice(weight);
  DeviceMemory device_y = OnDevice(y);
  const DeviceMemory device_bias = OnDevice(bias);
  const DeviceMemory workspace = OnDevice(Bytes((*convolution)->workspace_bytes()));
  RunTwice(
      [&](Stream stream) {
        return (*convolution)
            ->Run(device_x.data(), device_weight.data(), device_y.data(),
                  s.bias ? device_bias.data() : nullptr, workspace.data(), stream);
      },
      before,
      is_forward       ? device_y
      : is_grad_weight ? device_weight
                       : device_x,
      s.type, expected, GetParam().options.allow_tf32 ? 2e-3 : ToleranceOf(s.type));
}

// Computes the other sizes.
ConvolutionSpec Geometry(int64_t n, int64_t c, int64_t size, int64_t k, int64_t kernel, int64_t stride,
                         int64_t pad, int64_t dilation = 1, int64_t groups = 1) {
  const auto out = [&](int64_t in) { return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; };
  return {.n = n,
          .c = c,
          .h = size,
          .w = size + 1,
          .k = k,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .out_h = out(size),
          .out_w = out(size + 1),
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .groups = groups};
}

std::vector<ConvolutionCase> ConvolutionCases() {
  const std::vector<ConvolutionSpec> shapes = {
      Geometry(3, 1, 28, 20, 5, 1, 0),        Geometry(4, 20, 12, 50, 5, 1, 0),
      Geometry(4, 64, 14, 64, 3, 1, 1),       Geometry(4, 64, 14, 128, 3, 2, 1),
      Geometry(4, 64, 14, 128, 1, 2, 0),      Geometry(2, 3, 32, 64, 7, 2, 3),
      Geometry(3, 1, 28, 64, 3, 1, 1),        Geometry(2, 3, 32, 16, 3, 1, 1),
      Geometry(2, 16, 9, 16, 3, 1, 1, 1, 16), Geometry(2, 16, 9, 32, 3, 1, 2, 2),
      Geometry(2, 24, 9, 48, 3, 1, 1, 1, 3),  Geometry(5, 7, 6, 11, 3, 1, 1),
      Geometry(1, 512, 4, 512, 3, 1, 1),
  };
  std::vector<ConvolutionCase> cases;
  for (ConvolutionSpec spec : shapes) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16}) {
      spec.type = type;
      for (const ConvolutionKind kind :
           {ConvolutionKind::kForward, ConvolutionKind::kGradInput, ConvolutionKind::kGradWeight}) {
        spec.kind = kind;
        cases.push_back({spec});
      }
    }
  }
  for (const size_t i : {0, 2, 8}) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16}) {
      ConvolutionSpec spec = shapes[i];
      spec.type = type;
      spec.bias = true;
      cases.push_back({spec});
      spec.relu = true;
      cases.push_back({spec});
      spec.bias = false;
      cases.push_back({spec});
      cases.push_back({spec, {.deterministic = true}});
    }
  }
  for (const ConvolutionKind kind :
       {ConvolutionKind::kForward, ConvolutionKind::kGradInput, ConvolutionKind::kGradWeight}) {
    ConvolutionSpec spec = shapes[2];
    spec.kind = kind;
    cases.push_back({spec, {.allow_tf32 = true}});
    spec.type = DType::kBFloat16;
    cases.push_back({spec, {.deterministic = true}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Specs, ConvolutionTest, testing::ValuesIn(ConvolutionCases()));

// Returns how many numbers are NaN in only one of the two.
int64_t NanDifferences(DType type, const Bytes& actual, const Bytes& expected) {
  int64_t differences = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(expected.size()) / SizeOf(type); ++i) {
    differences += std::isnan(At(type, actual, i)) != std::isnan(At(type, expected, i));
  }
  return differences;
}

// Replaces the number at `place` by NaN: all bits set, in every type.
void SetNan(DType type, Bytes& bytes, int64_t place) {
  std::memset(bytes.data() + place * SizeOf(type), 0xff, SizeOf(type));
}

// A fused ReLU that turned NaN into 0 would hide a failed training.
class FusedReluTest : public LibrariesTest, public testing::WithParamInterface<DType> {};

TEST_P(FusedReluTest, OfAConvolutionKeepsNan) {
  ConvolutionSpec s = Geometry(4, 64, 14, 64, 3, 1, 1);
  s.type = GetParam();
  s.bias = s.relu = true;
  const auto dnn = CreateDnn({});
  ASSERT_TRUE(dnn.ok()) << dnn.status();
  const auto convolution = (*dnn)->Plan(s, int64_t{32} << 20);
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  SCOPED_TRACE((*convolution)->algorithm());
  if (!(*convolution)->takes_relu()) return;
  Bytes x = Numbers(s.type, s.n * s.h * s.w * s.c, 1);
  SetNan(s.type, x, 1000);
  Bytes weight = Numbers(s.type, s.k * s.kernel_h * s.kernel_w * s.c, 2);
  Bytes expected(s.n * s.out_h * s.out_w * s.k * SizeOf(s.type));
  const Bytes bias = Numbers(s.type, s.k, 4);
  const DeviceMemory device_x = OnDevice(x);
  const DeviceMemory device_weight = OnDevice(weight);
  const DeviceMemory device_y = OnDevice(expected);
  const DeviceMemory device_bias = OnDevice(bias);
  const DeviceMemory workspace = OnDevice(Bytes((*convolution)->workspace_bytes()));
  const absl::Status status = (*convolution)
                                  ->Run(device_x.data(), device_weight.data(), device_y.data(),
                                        device_bias.data(), workspace.data(), stream_->get());
  ASSERT_TRUE(status.ok()) << status;
  ConvolveByLoops(s, x.data(), weight.data(), expected.data(), bias.data());
  EXPECT_GT(NanDifferences(s.type, Bytes(expected.size()), expected), 0);
  EXPECT_EQ(NanDifferences(s.type, OnHost(device_y, expected.size()), expected), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedReluTest,
                         testing::Values(DType::kFloat32, DType::kBFloat16, DType::kFloat16));

// Without memory for measuring, the choice is a guess with the same result.
TEST_F(LibrariesTest, WithoutRoomAGuessDoes) {
  const LibraryOptions options = {.room = [] { return int64_t{0}; }};
  const auto blas = CreateBlas(options);
  ASSERT_TRUE(blas.ok()) << blas.status();
  const auto gemm = (*blas)->Plan({.m = 96, .n = 160, .k = 224}, int64_t{1} << 20);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  const Bytes a = Numbers(DType::kFloat32, 96 * 224, 1);
  const Bytes b = Numbers(DType::kFloat32, 224 * 160, 2);
  const DeviceMemory a_there = OnDevice(a);
  const DeviceMemory b_there = OnDevice(b);
  const auto c = DeviceMemory::Allocate(96 * 160 * 4);
  const auto workspace = DeviceMemory::Allocate((*gemm)->workspace_bytes());
  ASSERT_TRUE(c.ok() && workspace.ok());
  ASSERT_TRUE((*gemm)
                  ->Run(a_there.data(), b_there.data(), c->data(), nullptr, workspace->data(), stream_->get())
                  .ok());
  Bytes expected(96 * 160 * 4);
  MultiplyByLoops({.m = 96, .n = 160, .k = 224}, a.data(), b.data(), expected.data(), nullptr);
  ExpectNear(DType::kFloat32, OnHost(*c, expected.size()), expected, ToleranceOf(DType::kFloat32));
  const auto dnn = CreateDnn(options);
  ASSERT_TRUE(dnn.ok()) << dnn.status();
  EXPECT_TRUE((*dnn)->Plan(Geometry(4, 16, 14, 24, 3, 1, 1), int64_t{1} << 20).ok());
}

// Not a test: measures a GPU's speed with the convolutions of a ResNet-18 for 28x28 images.
TEST_F(LibrariesTest, SpeedOfConvolutions) {
  if (IsEmulated()) return;
  const auto dnn = CreateDnn({});
  ASSERT_TRUE(dnn.ok()) << dnn.status();
  for (const auto& [channels, size] :
       {std::pair(64, 28), std::pair(128, 14), std::pair(256, 7), std::pair(512, 4)}) {
    for (const ConvolutionKind kind :
         {ConvolutionKind::kForward, ConvolutionKind::kGradInput, ConvolutionKind::kGradWeight}) {
      ConvolutionSpec spec = Geometry(256, channels, size, channels, 3, 1, 1);
      spec.w = size;
      spec.out_w = size;
      spec.kind = kind;
      spec.type = DType::kBFloat16;
      const auto convolution = (*dnn)->Plan(spec, int64_t{32} << 20);
      ASSERT_TRUE(convolution.ok()) << convolution.status();
      const int64_t elements = spec.n * spec.h * spec.w * spec.c;
      const auto x = RandomNumbers(spec.type, elements, stream_->get());
      const auto weight = RandomNumbers(spec.type, spec.k * 9 * spec.c, stream_->get());
      const auto y = RandomNumbers(spec.type, elements, stream_->get());
      const auto workspace = DeviceMemory::Allocate((*convolution)->workspace_bytes());
      ASSERT_TRUE(x.ok() && weight.ok() && y.ok() && workspace.ok());
      const absl::StatusOr<double> seconds = MeasureSeconds(*stream_, [&](Stream stream) {
        return (*convolution)->Run(x->data(), weight->data(), y->data(), nullptr, workspace->data(), stream);
      });
      ASSERT_TRUE(seconds.ok()) << seconds.status();
      std::cout << "speed: " << spec.ToString() << ": " << *seconds * 1e6 << " us, "
                << 2e-12 * static_cast<double>(elements * spec.k * 9) / *seconds << " TFLOP/s\n";
    }
  }
}

}  // namespace
}  // namespace tandem::cuda
