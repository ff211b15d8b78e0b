// Matrix products in bfloat16, beside the oracle.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/matmul.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Factors are rounded to 8 bits.
constexpr double kTolerance = 1e-2;

void ExpectAgreement(const CaseGraph& narrow, const CaseGraph& exact) {
  CpuDevice one("cpu:0", 1, DType::kBFloat16);
  CpuDevice three("cpu:1", 3, DType::kBFloat16);
  const std::unique_ptr<Device> reference = CreateReferenceDevice();
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, exact);
  const absl::StatusOr<RunResult> actual = RunCaseOn(one, narrow);
  const absl::StatusOr<RunResult> again = RunCaseOn(one, narrow);
  const absl::StatusOr<RunResult> shared = RunCaseOn(three, narrow);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(shared.ok()) << shared.status();
  ASSERT_EQ(actual->outputs.size(), expected->outputs.size());
  for (size_t i = 0; i < actual->outputs.size(); ++i) {
    const Tensor& output = actual->outputs[i];
    const double error = RelativeError(output, expected->outputs[i]);
    EXPECT_TRUE(error <= kTolerance) << "output " << i << " is off by " << error;
    EXPECT_EQ(std::memcmp(output.raw_data(), again->outputs[i].raw_data(), output.bytes()), 0)
        << "output " << i << " differs in a second run";
    if (cpu::BestTileKernels() == nullptr) continue;
    EXPECT_EQ(std::memcmp(output.raw_data(), shared->outputs[i].raw_data(), output.bytes()), 0)
        << "output " << i << " depends on the number of threads";
  }
}

// A dense layer over `x` with all gradients.
CaseGraph Dense(const Shape& x, int64_t units, bool has_bias, bool relu, DType dtype) {
  CaseGraph g(dtype);
  const ValueId input = g.Input("x", x);
  const ValueId weight = g.Variable("weight", {units, x[-1]});
  std::vector<ValueId> inputs = {input, weight};
  if (has_bias) inputs.push_back(g.Variable("bias", {units}));
  if (relu) {
    g.Add(std::make_shared<ReluOp>(), g.AddHidden(std::make_shared<LinearOp>(), inputs));
  } else {
    g.Add(std::make_shared<LinearOp>(), inputs);
  }
  const ValueId grad = g.Input("grad", x.WithExtent(-1, units));
  g.Add(std::make_shared<LinearGradWeightOp>(has_bias), {input, grad});
  g.Add(std::make_shared<LinearGradInputOp>(), {grad, weight});
  return g;
}

// Products of `matrices` matrices [rows, depth] and [depth, columns].
CaseGraph Product(const std::vector<int64_t>& matrices, int64_t rows, int64_t depth, int64_t columns,
                  bool transpose_a, bool transpose_b, DType dtype) {
  CaseGraph g(dtype);
  const auto shape = [&](int64_t first, int64_t second, bool transpose) {
    std::vector<int64_t> extents = matrices;
    extents.push_back(transpose ? second : first);
    extents.push_back(transpose ? first : second);
    return Shape(extents);
  };
  g.Add(std::make_shared<MatmulOp>(transpose_a, transpose_b),
        {g.Input("a", shape(rows, depth, transpose_a)), g.Input("b", shape(depth, columns, transpose_b))});
  return g;
}

// Dense layers over hidden values, and all gradients. If `host_reads`, the host reads the hidden values as
// the last outputs, and they stay float32.
CaseGraph Stack(const Shape& x, int layers, bool host_reads) {
  CaseGraph g(DType::kFloat32);
  const auto scale = [](double factor) { return std::make_shared<ScaleOp>(factor); };
  std::vector<ValueId> hidden;
  std::vector<ValueId> weights;
  ValueId y = g.Input("x", x);
  for (int layer = 0; layer < layers; ++layer) {
    hidden.push_back(g.AddHidden(scale(0.7), {y})[0]);
    weights.push_back(g.Variable(absl::StrCat("weight", layer), {x[-1], x[-1]}, -0.2, 0.2));
    y = g.AddHidden(std::make_shared<LinearOp>(), {hidden.back(), weights.back()})[0];
  }
  ValueId grad = g.Add(scale(0.3), {y})[0];
  for (int layer = layers - 1; layer >= 0; --layer) {
    g.Add(std::make_shared<LinearGradWeightOp>(false), {hidden[layer], grad});
    grad = g.AddHidden(std::make_shared<LinearGradInputOp>(), {grad, weights[layer]})[0];
  }
  g.graph().MarkOutput(grad);
  if (host_reads) {
    for (const ValueId id : hidden) g.graph().MarkOutput(id);
  }
  return g;
}

// The scores q k^T of hidden queries and keys, and all gradients. If `host_reads`, the host reads q and k as
// the last outputs, and they stay float32.
CaseGraph Scores(const Shape& shape, bool host_reads) {
  CaseGraph g(DType::kFloat32);
  const auto scale = [](double factor) { return std::make_shared<ScaleOp>(factor); };
  const ValueId q = g.AddHidden(scale(0.7), {g.Input("q", shape)})[0];
  const ValueId k = g.AddHidden(scale(0.9), {g.Input("k", shape)})[0];
  const ValueId scores = g.AddHidden(std::make_shared<MatmulOp>(false, true), {q, k})[0];
  const ValueId grad = g.Add(scale(0.3), {scores})[0];
  g.Add(std::make_shared<MatmulOp>(false, false), {grad, k});
  g.Add(std::make_shared<MatmulOp>(true, false), {grad, q});
  if (host_reads) {
    g.graph().MarkOutput(q);
    g.graph().MarkOutput(k);
  }
  return g;
}

// Runs both graphs, on three threads. `reading` has all outputs of `keeping`, and more.
void ExpectSameBits(const CaseGraph& keeping, const CaseGraph& reading) {
  CpuDevice device("cpu:0", 3, DType::kBFloat16);
  const absl::StatusOr<RunResult> kept = RunCaseOn(device, keeping);
  const absl::StatusOr<RunResult> read = RunCaseOn(device, reading);
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_LT(kept->outputs.size(), read->outputs.size());
  for (size_t i = 0; i < kept->outputs.size(); ++i) {
    const Tensor& output = kept->outputs[i];
    ASSERT_EQ(output.bytes(), read->outputs[i].bytes());
    EXPECT_EQ(std::memcmp(output.raw_data(), read->outputs[i].raw_data(), output.bytes()), 0)
        << "output " << i;
  }
}

// An LSTM with its gradient. Small weights keep rounding errors from growing with the positions.
CaseGraph Lstm(int64_t samples, int64_t length, int64_t units, bool reverse, DType dtype) {
  CaseGraph g(dtype);
  const ValueId projected = g.Input("projected", {samples, length, 4 * units});
  const ValueId h0 = g.Input("h0", {samples, units});
  const ValueId c0 = g.Input("c0", {samples, units});
  const ValueId weight = g.Variable("weight", {4 * units, units}, -0.2, 0.2);
  const std::vector<ValueId> y =
      g.Add(std::make_shared<LstmOp>(reverse), {projected, h0, c0, weight, g.Variable("bias", {4 * units})});
  g.Add(std::make_shared<LstmGradOp>(reverse),
        {weight, h0, c0, y[0], y[3], y[4], g.Input("grad_y", {samples, length, units}),
         g.Input("grad_h", {samples, units}), g.Input("grad_c", {samples, units})});
  return g;
}

TEST(ProductsTest, AgreeWithTheOracleOnRandomShapes) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  std::mt19937 random(39);
  const auto draw = [&random](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  for (int i = 0; i < 200; ++i) {
    const auto check = [](const auto& make) {
      ExpectAgreement(make(DType::kFloat32), make(DType::kFloat64));
    };
    switch (draw(0, 3)) {
      case 0: {
        const Shape x = {draw(1, 70), draw(1, 100)};
        const int64_t units = draw(1, 90);
        const bool has_bias = draw(0, 1) == 0;
        const bool relu = draw(0, 1) == 0;
        SCOPED_TRACE(absl::StrCat("dense ", x.ToString(), " to ", units, has_bias ? " bias" : "",
                                  relu ? " relu" : ""));
        check([&](DType dtype) { return Dense(x, units, has_bias, relu, dtype); });
        break;
      }
      case 1: {
        const Shape x = {draw(1, 5), draw(1, 20), draw(1, 80)};
        const int64_t units = draw(1, 90);
        const bool has_bias = draw(0, 1) == 0;
        SCOPED_TRACE(absl::StrCat("dense ", x.ToString(), " to ", units, has_bias ? " bias" : ""));
        check([&](DType dtype) { return Dense(x, units, has_bias, false, dtype); });
        break;
      }
      case 2: {
        const std::vector<int64_t> matrices = {draw(1, 3), draw(1, 2)};
        const int64_t rows = draw(1, 70);
        const int64_t depth = draw(1, 70);
        const int64_t columns = draw(1, 70);
        const bool transpose_a = draw(0, 1) == 0;
        const bool transpose_b = draw(0, 1) == 0;
        SCOPED_TRACE(absl::StrCat(matrices[0] * matrices[1], " products [", rows, ", ", depth, "] [", depth,
                                  ", ", columns, "]", transpose_a ? " transpose_a" : "",
                                  transpose_b ? " transpose_b" : ""));
        check([&](DType dtype) {
          return Product(matrices, rows, depth, columns, transpose_a, transpose_b, dtype);
        });
        break;
      }
      default: {
        const int64_t samples = draw(1, 35);
        const int64_t length = draw(1, 4);
        const int64_t units = draw(1, 40);
        const bool reverse = draw(0, 1) == 0;
        SCOPED_TRACE(absl::StrCat("lstm ", samples, " x ", length, " x ", units, reverse ? " reverse" : ""));
        check([&](DType dtype) { return Lstm(samples, length, units, reverse, dtype); });
      }
    }
  }
}

// More depth than a part takes, in plain and in batch-blocked rows.
TEST(ProductsTest, AddUpPartsOfDepth) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  const auto check = [](const auto& make) { ExpectAgreement(make(DType::kFloat32), make(DType::kFloat64)); };
  check([](DType dtype) { return Dense({32, 2500}, 65, true, true, dtype); });
  check([](DType dtype) { return Dense({48, 70}, 2500, true, false, dtype); });
  check([](DType dtype) { return Dense({2, 1250, 33}, 47, true, true, dtype); });
  check([](DType dtype) { return Product({1}, 33, 2300, 40, true, true, dtype); });
}

// Packs the numbers of a matrix [rows, width] in all forms: once from bfloat16, and once from float32.
TEST(ProductsTest, PackBFloat16LikeFloat32) {
  const cpu::TileKernels* tiles = cpu::BestTileKernels();
  if (tiles == nullptr) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  std::mt19937 random(39);
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1}, {32, 64}, {33, 70}, {47, 17}, {16, 95}};
  for (const auto& [rows, width] : sizes) {
    std::vector<uint16_t> narrow(rows * width);
    std::vector<float> wide(rows * width);
    for (size_t i = 0; i < narrow.size(); ++i) {
      // Numbers between 0.5 and 2, with either sign.
      narrow[i] = static_cast<uint16_t>((random() % 2 << 15) + 0x3f00 + random() % 0x100);
      const uint32_t bits = static_cast<uint32_t>(narrow[i]) << 16;
      std::memcpy(&wide[i], &bits, sizeof(bits));
    }
    for (const bool columns : {false, true}) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(absl::StrCat("[", rows, ", ", width, "]", columns ? " columns" : "",
                                  transposed ? " transposed" : ""));
        cpu::TileFactor form = {.lines = transposed ? width : rows,
                                .depth = transposed ? rows : width,
                                .depth_vectors = !transposed,
                                .stride = width,
                                .columns = columns};
        const int64_t steps = (form.depth + cpu::kTileChannels - 1) / cpu::kTileChannels;
        std::vector<uint16_t> expected(form.blocks() * steps * cpu::kPackedStep);
        std::vector<uint16_t> actual(expected.size());
        tiles->pack_factor(form, wide.data(), 0, steps, expected.data(), 0, form.blocks());
        form.narrow = true;
        tiles->pack_factor(form, narrow.data(), 0, steps, actual.data(), 0, form.blocks());
        EXPECT_TRUE(actual == expected);
        // The packed blocks have each number of the matrix once, and zeros.
        EXPECT_EQ(std::count_if(actual.begin(), actual.end(), [](uint16_t number) { return number != 0; }),
                  rows * width);
      }
    }
  }
}

// A copy of a factor in bfloat16 gives the same products as the float32 numbers.
TEST(ProductsTest, KeepTheBitsOfHiddenFactors) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  for (const Shape& x : {Shape({1, 1, 1}), Shape({2, 17, 33}), Shape({3, 40, 64}), Shape({2, 1250, 47})}) {
    SCOPED_TRACE(x.ToString());
    ExpectSameBits(Stack(x, 3, false), Stack(x, 3, true));
    ExpectSameBits(Scores(x, false), Scores(x, true));
  }
}

TEST(ProductsTest, KeepHiddenFactorsInHalfTheMemory) {
  if (cpu::BestTileKernels() == nullptr) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  constexpr int kLayers = 16;
  const Shape x = {2, 512, 64};
  const CaseGraph g = Stack(x, kLayers, false);
  CpuDevice device("cpu:0", 1, DType::kBFloat16);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable = device.Compile(g.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  // The backward pass reads all hidden values, so all are in memory together. The limit leaves six float32
  // tensors for results, gradients and scratch.
  const int64_t hidden_bytes = x.elements() * SizeOf(DType::kFloat32);
  EXPECT_LT((*executable)->bytes(), kLayers * hidden_bytes / 2 + 6 * hidden_bytes);
}

TEST(ProductsTest, UseTiles) {
  if (cpu::BestTileKernels() == nullptr) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  const auto names_of = [](const CaseGraph& g) {
    CpuDevice device("cpu:0", 1, DType::kBFloat16);
    const std::unique_ptr<Variables> variables = device.CreateVariables();
    const absl::StatusOr<std::unique_ptr<Executable>> executable = device.Compile(g.graph(), variables.get());
    EXPECT_TRUE(executable.ok()) << executable.status();
    std::vector<std::string> names;
    if (!executable.ok()) return names;
    auto& compiled = static_cast<cpu::CpuExecutable&>(**executable);
    EXPECT_EQ(compiled.notice(), "");
    compiled.StartProfile();
    for (const auto& step : compiled.profile()) names.push_back(step.name);
    return names;
  };
  EXPECT_THAT(names_of(Dense({2, 8, 24}, 40, true, true, DType::kFloat32)),
              ElementsAre("linear + relu tiles", "linear_grad_weight tiles", "linear_grad_bias tiles",
                          "linear_grad_input tiles"));
  EXPECT_THAT(names_of(Stack({2, 8, 24}, 1, false)),
              ElementsAre("scale", "reorder", "linear tiles", "scale", "linear_grad_weight tiles",
                          "linear_grad_input tiles"));
  EXPECT_THAT(names_of(Scores({2, 8, 24}, false)),
              ElementsAre("scale", "scale", "reorder", "reorder", "matmul tiles", "scale", "matmul tiles",
                          "matmul tiles"));
  EXPECT_THAT(names_of(Product({2}, 8, 24, 40, false, true, DType::kFloat32)), ElementsAre("matmul tiles"));
  EXPECT_THAT(names_of(Lstm(4, 3, 8, false, DType::kFloat32)),
              ElementsAre(HasSubstr("lstm tiles"), HasSubstr("lstm_grad tiles")));
}

}  // namespace
}  // namespace tandem
