// Convolutions in bfloat16 over tiled images, beside the oracle.

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/pooling.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Factors and results are rounded to 8 bits.
constexpr double kTolerance = 1e-2;

struct Problem {
  Shape x;
  Shape weight;
  Conv2dGeometry geometry;
  bool has_bias = false;

  std::string ToString() const {
    return x.ToString() + " * " + weight.ToString() + " " + geometry.ToString() + (has_bias ? " bias" : "");
  }
};

// The forward pass and all gradients.
CaseGraph GraphOf(const Problem& p, DType dtype) {
  CaseGraph g(dtype);
  const ValueId x = g.Input("x", p.x);
  const ValueId weight = g.Variable("weight", p.weight);
  std::vector<ValueId> inputs = {x, weight};
  if (p.has_bias) inputs.push_back(g.Variable("bias", {p.weight[0]}));
  const ValueId y = g.Add(std::make_shared<Conv2dOp>(p.geometry), inputs)[0];
  const ValueId grad = g.Input("grad", g.graph().value(y).shape);
  g.Add(std::make_shared<Conv2dGradInputOp>(p.geometry, p.x), {grad, weight});
  g.Add(std::make_shared<Conv2dGradWeightOp>(p.geometry, p.weight, p.has_bias), {x, grad});
  return g;
}

void ExpectAgreement(const CaseGraph& narrow, const CaseGraph& exact) {
  CpuDevice one("cpu:0", 1, DType::kBFloat16);
  CpuDevice three("cpu:1", 3, DType::kBFloat16);
  const std::unique_ptr<Device> reference = CreateReferenceDevice();
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, exact);
  const absl::StatusOr<RunResult> actual = RunCaseOn(one, narrow);
  const absl::StatusOr<RunResult> shared = RunCaseOn(three, narrow);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_TRUE(shared.ok()) << shared.status();
  ASSERT_EQ(actual->outputs.size(), expected->outputs.size());
  for (size_t i = 0; i < actual->outputs.size(); ++i) {
    const double error = RelativeError(actual->outputs[i], expected->outputs[i]);
    EXPECT_TRUE(error <= kTolerance) << "output " << i << " is off by " << error;
    if (cpu::BestTileKernels() == nullptr) continue;
    // The sums' order does not depend on the threads.
    const Tensor& again = shared->outputs[i];
    ASSERT_EQ(actual->outputs[i].bytes(), again.bytes());
    EXPECT_EQ(std::memcmp(actual->outputs[i].raw_data(), again.raw_data(), again.bytes()), 0)
        << "output " << i << " depends on the number of threads";
  }
}

TEST(TiledTest, AgreesWithTheOracleOnRandomShapes) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  std::mt19937 random(39);
  const auto draw = [&random](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int cases = 0;
  while (cases < 200) {
    Problem p;
    const bool first_layer = draw(0, 3) == 0;
    const int64_t channels = first_layer ? draw(1, 4) : 16 * draw(1, 4);
    p.x = Shape({16 * draw(1, 3), channels, draw(1, 8), draw(1, 8)});
    p.weight = Shape({16 * draw(1, 4), channels, draw(1, 3), draw(1, 3)});
    p.geometry.stride = {draw(1, 2), draw(1, 2)};
    p.geometry.padding = {draw(0, 2), draw(0, 2)};
    p.geometry.dilation = {draw(1, 2), draw(1, 2)};
    p.has_bias = draw(0, 1) == 0;
    const auto reach = [](int64_t kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; };
    if (p.x[2] + 2 * p.geometry.padding.h < reach(p.weight[2], p.geometry.dilation.h)) continue;
    if (p.x[3] + 2 * p.geometry.padding.w < reach(p.weight[3], p.geometry.dilation.w)) continue;
    SCOPED_TRACE(p.ToString());
    ExpectAgreement(GraphOf(p, DType::kFloat32), GraphOf(p, DType::kFloat64));
    ++cases;
  }
}

// Channels that do not fill blocks of 16, with strides that the batch-blocked kernels do not offer, and more
// packed pixels than a part of the weight gradient's sum takes.
TEST(TiledTest, AgreesWithTheOracleOnOddShapes) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  for (const Problem& p :
       {Problem{{16, 17, 5, 7}, {31, 17, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, true},
        Problem{{32, 33, 4, 3}, {16, 33, 1, 1}, {.stride = {2, 2}}, false},
        Problem{{16, 3, 12, 12}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}, true},
        Problem{{16, 16, 1, 1}, {16, 16, 3, 3}, {.padding = {1, 1}}, true},
        Problem{{16, 64, 24, 24}, {64, 64, 3, 3}, {.padding = {1, 1}}, false},
        Problem{{16, 1, 9, 9}, {48, 1, 3, 3}, {.padding = {1, 1}}, true},
        // By Winograd's transforms if they gain: patches over the edges, odd numbers of patches, several
        // groups, and several slices of the weight gradient's outputs.
        Problem{{48, 48, 9, 5}, {80, 48, 3, 3}, {.padding = {1, 1}}, true},
        Problem{{16, 48, 9, 6}, {16, 48, 3, 3}, {.padding = {2, 0}}, true},
        Problem{{16, 16, 9, 9}, {16, 16, 3, 3}, {.padding = {3, 0}}, false},
        Problem{{48, 16, 18, 18}, {16, 16, 3, 3}, {.padding = {1, 1}}, false},
        Problem{{16, 16, 6, 6}, {16, 16, 3, 3}, {.padding = {1, 1}}, true},
        Problem{{16, 512, 3, 3}, {224, 512, 3, 3}, {.padding = {1, 1}}, false}}) {
    SCOPED_TRACE(p.ToString());
    ExpectAgreement(GraphOf(p, DType::kFloat32), GraphOf(p, DType::kFloat64));
  }
}

// A convolution that only copies makes tiles. Its numbers are exact in bfloat16, so both sides choose the
// same largest elements.
CaseGraph PoolingOf(const PoolGeometry& geometry, const Shape& shape, DType dtype) {
  CaseGraph g(dtype);
  const int64_t channels = shape[1];
  const ValueId x = g.Input("x", shape);
  const ValueId weight = g.Variable("weight", {channels, channels, 1, 1});
  Tensor numbers = g.inputs()[0].CastTo(DType::kFloat64);
  for (double& number : numbers.data<double>()) number = std::round(number * 100) / 64;
  g.inputs()[0] = numbers.CastTo(dtype);
  Tensor identity(DType::kFloat64, {channels, channels, 1, 1});
  for (int64_t i = 0; i < identity.elements(); ++i) {
    identity.data<double>()[i] = i % (channels + 1) == 0 ? 1 : 0;
  }
  g.variables().at("weight") = identity.CastTo(dtype);
  const ValueId made = g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry()), {x, weight})[0];
  const std::vector<ValueId> largest = g.AddHidden(std::make_shared<MaxPool2dOp>(geometry), {made});
  g.graph().MarkOutput(largest[0]);
  const ValueId copied = g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry()), {largest[0], weight})[0];
  g.Add(std::make_shared<MaxPool2dGradOp>(geometry, shape), {copied, largest[1]});
  for (const bool count_padding : {false, true}) {
    g.Add(std::make_shared<AveragePool2dOp>(geometry, count_padding), {made});
    g.Add(std::make_shared<AveragePool2dGradOp>(geometry, count_padding, shape), {copied});
  }
  return g;
}

TEST(TiledTest, PoolsLikeTheOracle) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  for (const PoolGeometry& geometry :
       {PoolGeometry{{2, 2}, {2, 2}, {0, 0}}, PoolGeometry{{3, 3}, {2, 2}, {1, 1}},
        PoolGeometry{{3, 2}, {1, 2}, {1, 0}}, PoolGeometry{{1, 2}, {2, 3}, {0, 1}},
        PoolGeometry{{7, 5}, {1, 1}, {0, 0}}}) {
    for (const int64_t channels : {16, 33}) {
      SCOPED_TRACE(testing::Message() << geometry.size.h << "x" << geometry.size.w << " of " << channels);
      const Shape shape = {16, channels, 7, 5};
      ExpectAgreement(PoolingOf(geometry, shape, DType::kFloat32),
                      PoolingOf(geometry, shape, DType::kFloat64));
    }
  }
}

// Tiles pass from a convolution through a normalisation to the next convolution without a conversion.
TEST(TiledTest, KeepsTilesBetweenConvolutions) {
  if (cpu::BestTileKernels() == nullptr) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  CaseGraph g(DType::kFloat32);
  const Conv2dGeometry same = {.padding = {1, 1}};
  ValueId x = g.Input("x", {32, 3, 8, 8});
  for (const int layer : {1, 2, 3}) {
    const std::string name = std::to_string(layer);
    const int64_t channels = g.graph().value(x).shape[1];
    x = g.AddHidden(std::make_shared<Conv2dOp>(same),
                    {x, g.Variable("weight" + name, {32, channels, 3, 3})})[0];
    x = g.AddHidden(std::make_shared<BatchNormOp>(0.1, 1e-5),
                    {x, g.Variable("gamma" + name, {32}), g.Variable("beta" + name, {32}),
                     g.Variable("mean" + name, {32}, -1, 1, VariableKind::kStatistic),
                     g.Variable("var" + name, {32}, 0.5, 2, VariableKind::kStatistic)})[0];
    x = layer < 3 ? g.AddHidden(std::make_shared<ReluOp>(), {x})[0]
                  : g.Add(std::make_shared<ReluOp>(), {x})[0];
  }
  CpuDevice device("cpu:0", 1, DType::kBFloat16);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable = device.Compile(g.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  auto& cpu = static_cast<cpu::CpuExecutable&>(**executable);
  cpu.StartProfile();
  std::vector<std::string> names;
  for (const auto& step : cpu.profile()) names.push_back(step.name);
  const std::string later =
      cpu::BestTileKernels()->convolve_winograd != nullptr ? "conv2d tiled winograd" : "conv2d tiled";
  EXPECT_EQ(names, (std::vector<std::string>{"unfold", "conv2d tiled", "batch_norm + relu", later,
                                             "batch_norm + relu", later, "batch_norm + relu", "from tiles"}));
}

}  // namespace
}  // namespace tandem
