// Batches that fill blocks of sixteen images, wholly or partly. The batches of the conformance suite are
// smaller.

#include <cstdlib>
#include <memory>
#include <string>

#include "engine/backend/op_cases.h"
#include "engine/backend/training_case.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr double kTolerance = 1e-4;

// Runs the graph of `build(dtype)` on the CPU and on the oracle, and compares.
template <typename Build>
void ExpectAgreement(const Build& build, int threads = 1) {
  CpuDevice device("cpu:0", threads);
  const std::unique_ptr<Device> reference = CreateReferenceDevice();
  const absl::StatusOr<RunResult> actual = RunCaseOn(device, build(device.dtype()));
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, build(reference->dtype()));
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_EQ(actual->outputs.size(), expected->outputs.size());
  for (size_t i = 0; i < actual->outputs.size(); ++i) {
    const double allowed = IsFloatingPoint(actual->outputs[i].dtype()) ? kTolerance : 0;
    EXPECT_TRUE(RelativeError(actual->outputs[i], expected->outputs[i]) <= allowed)
        << "output " << i << " is off by " << RelativeError(actual->outputs[i], expected->outputs[i]);
  }
  for (const auto& [name, value] : actual->variables) {
    EXPECT_TRUE(RelativeError(value, expected->variables.at(name)) <= kTolerance)
        << name << " is off by " << RelativeError(value, expected->variables.at(name));
  }
}

TEST(BatchBlockedTest, RunsTheInstructionSetThatIsAskedFor) {
  const char* asked = std::getenv("TANDEM_CPU_ISA");
  const cpu::Kernels* expected = cpu::AllKernels()[0];
  for (const cpu::Kernels* const* kernels = cpu::AllKernels(); *kernels != nullptr; ++kernels) {
    if (asked != nullptr && std::string((*kernels)->isa) == asked) expected = *kernels;
  }
  EXPECT_STREQ(cpu::BestKernels().isa, expected->isa);
}

TEST(BatchBlockedTest, TrainsLikeTheOracle) {
  for (const int64_t batch : {16, 28, 37, 64}) {
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(batch);
      SCOPED_TRACE(threads);
      ExpectAgreement([batch](DType dtype) { return TrainingCase(dtype, batch); }, threads);
    }
  }
}

TEST(BatchBlockedTest, EvaluatesLikeTheOracle) {
  for (const int64_t batch : {13, 16, 100}) {
    SCOPED_TRACE(batch);
    ExpectAgreement([batch](DType dtype) { return EvaluationCase(dtype, batch); });
  }
}

TEST(BatchBlockedTest, ConvolvesWithAnyKernelAndPadding) {
  struct Case {
    Shape x;
    Shape weight;
    Size2d padding;
  };
  for (const Case& c :
       {Case{{16, 1, 28, 28}, {20, 1, 5, 5}, {0, 0}}, Case{{30, 3, 9, 7}, {5, 3, 3, 3}, {1, 1}},
        Case{{16, 20, 12, 12}, {50, 20, 5, 5}, {0, 0}}, Case{{16, 2, 6, 31}, {7, 2, 1, 4}, {0, 2}},
        Case{{16, 5, 8, 11}, {3, 5, 4, 2}, {3, 1}}, Case{{32, 4, 5, 5}, {9, 4, 1, 1}, {0, 0}},
        Case{{16, 3, 5, 19}, {4, 3, 5, 5}, {2, 2}}, Case{{16, 16, 7, 7}, {16, 16, 3, 3}, {1, 1}},
        Case{{16, 2, 3, 3}, {2, 2, 3, 3}, {0, 0}}, Case{{16, 2, 9, 9}, {3, 2, 7, 7}, {3, 3}}}) {
    SCOPED_TRACE(c.x.ToString() + " * " + c.weight.ToString());
    const auto build = [&c](DType dtype) {
      CaseGraph g(dtype);
      const Conv2dGeometry geometry = {.padding = c.padding};
      const ValueId x = g.Input("x", c.x);
      const ValueId weight = g.Variable("weight", c.weight);
      const ValueId bias = g.Variable("bias", {c.weight[0]});
      const ValueId hidden = g.AddHidden(std::make_shared<Conv2dOp>(geometry), {x, weight, bias})[0];
      const ValueId y = g.Add(std::make_shared<ReluOp>(), {hidden})[0];
      g.Add(std::make_shared<Conv2dOp>(geometry), {x, weight});
      const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
      g.Add(std::make_shared<Conv2dGradInputOp>(geometry, c.x), {grad_y, weight});
      g.Add(std::make_shared<Conv2dGradWeightOp>(geometry, c.weight, true), {x, grad_y});
      return g;
    };
    ExpectAgreement(build, 1);
    ExpectAgreement(build, 2);
  }
}

// Nobody reads the convolution's own result. So pooling runs together with the convolution, and its gradient
// with the gradient of the weights.
TEST(BatchBlockedTest, PoolsAlongWithTheConvolution) {
  struct Case {
    Shape x;
    Shape weight;
    Size2d padding;
  };
  for (const Case& c :
       {Case{{16, 1, 12, 10}, {5, 1, 5, 5}, {0, 0}}, Case{{30, 2, 9, 8}, {3, 2, 3, 2}, {1, 0}},
        Case{{16, 20, 12, 12}, {50, 20, 5, 5}, {0, 0}}, Case{{16, 9, 11, 14}, {25, 9, 5, 5}, {2, 2}},
        Case{{16, 16, 9, 7}, {13, 16, 3, 3}, {1, 1}}, Case{{16, 16, 7, 23}, {16, 16, 3, 3}, {0, 0}}}) {
    SCOPED_TRACE(c.x.ToString() + " * " + c.weight.ToString());
    const auto build = [&c](DType dtype) {
      CaseGraph g(dtype);
      const Conv2dGeometry geometry = {.padding = c.padding};
      const PoolGeometry halves = {{2, 2}, {2, 2}, {0, 0}};
      const ValueId x = g.Input("x", c.x);
      const ValueId weight = g.Variable("weight", c.weight);
      const ValueId bias = g.Variable("bias", {c.weight[0]});
      const ValueId y = g.AddHidden(std::make_shared<Conv2dOp>(geometry), {x, weight, bias})[0];
      const std::vector<ValueId> pooled = g.Add(std::make_shared<MaxPool2dOp>(halves), {y});
      const ValueId grad = g.Input("grad", g.graph().value(pooled[0]).shape);
      const Shape y_shape = g.graph().value(y).shape;
      const ValueId grad_y =
          g.AddHidden(std::make_shared<MaxPool2dGradOp>(halves, y_shape), {grad, pooled[1]})[0];
      g.Add(std::make_shared<Conv2dGradWeightOp>(geometry, c.weight, true), {x, grad_y});
      return g;
    };
    ExpectAgreement(build, 1);
    ExpectAgreement(build, 3);
  }
}

// An incomplete last window counts, in layouts with batches, channels and single numbers side by side.
TEST(BatchBlockedTest, PoolsIncompleteLastWindows) {
  struct Case {
    Shape x;
    int64_t channels;
    int64_t stride;  // Of the convolution before.
  };
  for (const Case& c : {Case{{32, 3, 9, 9}, 20, 1}, Case{{37, 3, 10, 9}, 20, 1}, Case{{3, 3, 17, 17}, 16, 2},
                        Case{{3, 3, 17, 18}, 24, 2}}) {
    for (const PoolGeometry& pool :
         {PoolGeometry{{2, 2}, {2, 2}, {0, 0}, true}, PoolGeometry{{3, 3}, {2, 2}, {0, 0}, true},
          PoolGeometry{{2, 3}, {3, 3}, {1, 1}, true}}) {
      SCOPED_TRACE(c.x.ToString() + " " + pool.ToString());
      const auto build = [&](DType dtype) {
        CaseGraph g(dtype);
        const Conv2dGeometry geometry = {.stride = {c.stride, c.stride}, .padding = {1, 1}};
        const ValueId x = g.Input("x", c.x);
        const ValueId weight = g.Variable("weight", {c.channels, c.x[1], 3, 3});
        const ValueId y = g.AddHidden(std::make_shared<Conv2dOp>(geometry), {x, weight})[0];
        const Shape& shape = g.graph().value(y).shape;
        const std::vector<ValueId> most = g.Add(std::make_shared<MaxPool2dOp>(pool), {y});
        const ValueId mean = g.Add(std::make_shared<AveragePool2dOp>(pool, true), {y})[0];
        const ValueId grad = g.Input("grad", g.graph().value(most[0]).shape);
        g.Add(std::make_shared<MaxPool2dGradOp>(pool, shape), {grad, most[1]});
        g.Add(std::make_shared<AveragePool2dGradOp>(pool, true, shape), {mean});
        const ValueId grad_y =
            g.AddHidden(std::make_shared<MaxPool2dGradOp>(pool, shape), {mean, most[1]})[0];
        g.Add(std::make_shared<Conv2dGradWeightOp>(geometry, g.graph().value(weight).shape, false),
              {x, grad_y});
        return g;
      };
      ExpectAgreement(build, 1);
      ExpectAgreement(build, 2);
    }
  }
}

TEST(BatchBlockedTest, DenseLayersOfAnySize) {
  for (const auto& [rows, features, units] :
       {std::tuple{16, 1, 1}, {64, 800, 500}, {48, 37, 10}, {30, 130, 67}, {16, 64, 3}, {80, 17, 31}}) {
    SCOPED_TRACE(features);
    const auto build = [&, rows = rows, features = features, units = units](DType dtype) {
      CaseGraph g(dtype);
      const ValueId x = g.Input("x", {rows, features});
      const ValueId weight = g.Variable("weight", {units, features});
      const ValueId y = g.Add(std::make_shared<LinearOp>(), {x, weight, g.Variable("bias", {units})})[0];
      const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
      g.Add(std::make_shared<LinearGradInputOp>(), {grad_y, weight});
      g.Add(std::make_shared<LinearGradWeightOp>(true), {x, grad_y});
      return g;
    };
    ExpectAgreement(build, 1);
    ExpectAgreement(build, 2);
  }
}

// After convolutions with batch-blocked, channel-blocked and plain results.
TEST(BatchBlockedTest, NormalizesInEveryLayout) {
  for (const int64_t batch : {16, 21}) {
    for (const int64_t stride : {1, 2}) {
      SCOPED_TRACE(batch);
      SCOPED_TRACE(stride);
      const auto build = [=](DType dtype) {
        CaseGraph g(dtype);
        const ValueId x = g.Input("x", {batch, 3, 9, 8});
        const Conv2dGeometry geometry = {.stride = {stride, stride}, .padding = {1, 1}};
        const ValueId hidden =
            g.AddHidden(std::make_shared<Conv2dOp>(geometry), {x, g.Variable("weight", {21, 3, 3, 3})})[0];
        const ValueId gamma = g.Variable("gamma", {21});
        const ValueId mean = g.Variable("mean", {21}, -1, 1, VariableKind::kStatistic);
        const ValueId var = g.Variable("var", {21}, 0.5, 2, VariableKind::kStatistic);
        const std::vector<ValueId> y = g.Add(std::make_shared<BatchNormOp>(0.1, 1e-5),
                                             {hidden, gamma, g.Variable("beta", {21}), mean, var});
        const ValueId relu = g.AddHidden(std::make_shared<ReluOp>(), {y[0]})[0];
        const ValueId next = g.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{.padding = {1, 1}}),
                                   {relu, g.Variable("next", {5, 21, 3, 3})})[0];
        const ValueId grad_next = g.Input("grad_next", g.graph().value(next).shape);
        const ValueId grad_relu =
            g.AddHidden(std::make_shared<Conv2dGradInputOp>(Conv2dGeometry{.padding = {1, 1}},
                                                            g.graph().value(relu).shape),
                        {grad_next, g.graph().FindVariable("next")})[0];
        const ValueId grad_y = g.AddHidden(std::make_shared<ReluGradOp>(), {relu, grad_relu})[0];
        const std::vector<ValueId> grads =
            g.Add(std::make_shared<BatchNormGradOp>(), {hidden, grad_y, gamma, y[1], y[2]});
        g.Add(std::make_shared<Conv2dGradWeightOp>(geometry, Shape({21, 3, 3, 3}), false), {x, grads[0]});
        g.Add(std::make_shared<BatchNormInferenceOp>(1e-5),
              {hidden, gamma, g.graph().FindVariable("beta"), mean, var});
        return g;
      };
      ExpectAgreement(build, 1);
      ExpectAgreement(build, 2);
    }
  }
}

// Convolutions of each kind alternate, so that every change of layout occurs. Pooling follows in each layout.
TEST(BatchBlockedTest, ChangesLayoutsBetweenKernels) {
  ExpectAgreement([](DType dtype) {
    CaseGraph g(dtype);
    const ValueId bytes = g.Bytes("bytes", {18, 3, 14, 14});
    const ValueId x = g.Add(std::make_shared<NormalizeOp>(1.0 / 255, std::vector<double>{0.1, 0.2, 0.3},
                                                          std::vector<double>{2}, dtype),
                            {bytes})[0];
    const ValueId a =
        g.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{}), {x, g.Variable("a", {20, 3, 3, 3})})[0];
    const ValueId b = g.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{.stride = {2, 2}}),
                            {a, g.Variable("b", {24, 20, 3, 3})})[0];
    const std::vector<ValueId> pooled =
        g.Add(std::make_shared<MaxPool2dOp>(PoolGeometry{{3, 3}, {1, 1}, {1, 1}}), {b});
    const ValueId average =
        g.Add(std::make_shared<AveragePool2dOp>(PoolGeometry{{2, 2}, {2, 2}, {1, 1}}, false), {pooled[0]})[0];
    const ValueId sum = g.Add(std::make_shared<AddOp>(), {pooled[0], b})[0];
    const ValueId c = g.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{.padding = {1, 1}}),
                            {sum, g.Variable("c", {7, 24, 3, 3})})[0];
    const ValueId flat = g.Add(std::make_shared<ReshapeOp>(Shape({18, 7 * 25})), {c})[0];
    g.Add(std::make_shared<LinearOp>(), {flat, g.Variable("d", {6, 7 * 25})});
    const ValueId regrouped = g.Add(std::make_shared<ReshapeOp>(Shape({9, 14, 25})), {c})[0];
    g.Add(std::make_shared<ScaleOp>(-2), {regrouped});
    g.Add(std::make_shared<MaxPool2dGradOp>(PoolGeometry{{3, 3}, {1, 1}, {1, 1}}, g.graph().value(b).shape),
          {sum, pooled[1]});
    g.Add(std::make_shared<AveragePool2dGradOp>(PoolGeometry{{2, 2}, {2, 2}, {1, 1}}, false,
                                                g.graph().value(b).shape),
          {average});
    return g;
  });
}

}  // namespace
}  // namespace tandem
