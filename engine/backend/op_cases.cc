#include "engine/backend/op_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backend/data_cases.h"
#include "engine/backend/gradient_factor_cases.h"
#include "engine/backend/layer_cases.h"
#include "engine/backend/loss_cases.h"
#include "engine/backend/loss_scaling_cases.h"
#include "engine/backend/optimizer_cases.h"
#include "engine/backend/sequence_cases.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/batch_norm_sync.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns numbers that depend on `name` alone, the same with every standard library.
std::vector<double> Uniform(absl::string_view name, int64_t count, double low, double high) {
  std::mt19937_64 engine(std::accumulate(name.begin(), name.end(), uint64_t{17},
                                         [](uint64_t hash, char c) { return hash * 1099511628211u + c; }));
  std::vector<double> numbers(count);
  for (double& number : numbers) {
    number = low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
  }
  return numbers;
}

Tensor UniformTensor(absl::string_view name, DType dtype, const Shape& shape, double low, double high) {
  return Tensor::Of<double>(shape, Uniform(name, shape.elements(), low, high))
      .CastTo(DType::kFloat32)
      .CastTo(dtype);
}

OpCase Convolution(const std::string& name, Shape x, Shape weight, bool has_bias, Conv2dGeometry geometry) {
  return {absl::StrCat("conv2d ", name), [=](CaseGraph& g) {
            const ValueId input = g.Input("x", x);
            const ValueId kernel = g.Variable("weight", weight);
            std::vector<ValueId> inputs = {input, kernel};
            if (has_bias) inputs.push_back(g.Variable("bias", {weight[0]}));
            const ValueId y = g.Add(std::make_shared<Conv2dOp>(geometry), inputs)[0];
            const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
            g.Add(std::make_shared<Conv2dGradInputOp>(geometry, x), {grad_y, kernel});
            g.Add(std::make_shared<Conv2dGradWeightOp>(geometry, weight, has_bias), {input, grad_y});
          }};
}

OpCase MaxPooling(const std::string& name, Shape x, PoolGeometry geometry) {
  return {absl::StrCat("max_pool2d ", name), [=](CaseGraph& g) {
            const ValueId input = g.Input("x", x);
            const std::vector<ValueId> y = g.Add(std::make_shared<MaxPool2dOp>(geometry), {input});
            const ValueId grad_y = g.Input("grad_y", g.graph().value(y[0]).shape);
            g.Add(std::make_shared<MaxPool2dGradOp>(geometry, x), {grad_y, y[1]});
          }};
}

OpCase AveragePooling(const std::string& name, Shape x, PoolGeometry geometry, bool count_include_pad) {
  return {absl::StrCat("average_pool2d ", name), [=](CaseGraph& g) {
            const ValueId input = g.Input("x", x);
            const ValueId y =
                g.Add(std::make_shared<AveragePool2dOp>(geometry, count_include_pad), {input})[0];
            const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
            g.Add(std::make_shared<AveragePool2dGradOp>(geometry, count_include_pad, x), {grad_y});
          }};
}

OpCase BatchNormalization(Shape x, double momentum, double epsilon) {
  return {absl::StrCat("batch_norm ", x.ToString(), " momentum ", momentum), [=](CaseGraph& g) {
            const Shape channels({x[1]});
            const ValueId input = g.Input("x", x, 1, 4);
            const ValueId weight = g.Variable("weight", channels);
            const ValueId bias = g.Variable("bias", channels);
            const ValueId mean = g.Variable("running_mean", channels, -1, 1, VariableKind::kStatistic);
            const ValueId var = g.Variable("running_var", channels, 0.5, 2, VariableKind::kStatistic);
            const ValueId grad_y = g.Input("grad_y", x);
            g.Add(std::make_shared<BatchNormInferenceOp>(epsilon), {input, weight, bias, mean, var});
            g.Add(std::make_shared<BatchNormInferenceGradOp>(epsilon), {input, grad_y, weight, mean, var});
            const std::vector<ValueId> y =
                g.Add(std::make_shared<BatchNormOp>(momentum, epsilon), {input, weight, bias, mean, var});
            g.Add(std::make_shared<BatchNormGradOp>(), {input, grad_y, weight, y[1], y[2]});
            g.Add(std::make_shared<BatchNormInferenceOp>(epsilon), {input, weight, bias, mean, var});
          }};
}

// The second of three replicas. The other replicas have no samples.
OpCase SynchronizedBatchNormalization(Shape x, double momentum) {
  return {
      absl::StrCat("batch_norm_sync ", x.ToString(), " momentum ", momentum), [=](CaseGraph& g) {
        const Shape channels({x[1]});
        const ValueId input = g.Input("x", x, 1, 4);
        const ValueId weight = g.Variable("weight", channels);
        const ValueId bias = g.Variable("bias", channels);
        const ValueId mean = g.Variable("running_mean", channels, -1, 1, VariableKind::kStatistic);
        const ValueId var = g.Variable("running_var", channels, 0.5, 2, VariableKind::kStatistic);
        const ValueId grad_y = g.Input("grad_y", x);
        const ValueId moments = g.Add(std::make_shared<BatchNormMomentsOp>(1, 3), {input})[0];
        const std::vector<ValueId> y = g.Add(std::make_shared<BatchNormSyncOp>(momentum, 1e-3, 0.5),
                                             {input, weight, bias, mean, var, moments});
        const std::vector<ValueId> sums =
            g.Add(std::make_shared<BatchNormSumsOp>(), {input, grad_y, y[1], y[2]});
        g.Add(std::make_shared<BatchNormSyncGradOp>(), {input, grad_y, weight, y[1], y[2], sums[0], sums[1]});
        g.Add(std::make_shared<BatchNormRunningOp>(momentum), {moments, mean, var});
      }};
}

OpCase Dense(const std::string& name, Shape x, int64_t units, bool has_bias) {
  return {absl::StrCat("linear ", name), [=](CaseGraph& g) {
            const ValueId input = g.Input("x", x);
            const ValueId weight = g.Variable("weight", {units, x[-1]});
            std::vector<ValueId> inputs = {input, weight};
            if (has_bias) inputs.push_back(g.Variable("bias", {units}));
            const ValueId y = g.Add(std::make_shared<LinearOp>(), inputs)[0];
            const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
            g.Add(std::make_shared<LinearGradInputOp>(), {grad_y, weight});
            g.Add(std::make_shared<LinearGradWeightOp>(has_bias), {input, grad_y});
          }};
}

OpCase Elementwise(Shape shape) {
  return {absl::StrCat("elementwise ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId a = g.Input("a", shape);
            const ValueId b = g.Variable("b", shape);
            const ValueId y = g.Add(std::make_shared<ReluOp>(), {a})[0];
            g.Add(std::make_shared<ReluGradOp>(), {y, b});
            g.Add(std::make_shared<AddOp>(), {a, b});
            g.Add(std::make_shared<AddOp>(), {b, b});
            g.Add(std::make_shared<AddOp>(), {y, g.graph().AddConstant(0.75, g.dtype(), shape)});
            g.Add(std::make_shared<ScaleOp>(-2.5), {b});
            g.Add(std::make_shared<ReshapeOp>(Shape({shape.elements(), 1})), {y});
          }};
}

// Each op may write over its input.
OpCase InPlaceChain(Shape shape) {
  return {absl::StrCat("in place ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId x = g.Input("x", shape);
            ValueId y = g.AddHidden(std::make_shared<ScaleOp>(3), {x})[0];
            y = g.AddHidden(std::make_shared<ReluOp>(), {y})[0];
            const ValueId kept = y;
            y = g.AddHidden(std::make_shared<AddOp>(), {y, x})[0];
            y = g.AddHidden(std::make_shared<AddOp>(), {y, y})[0];
            y = g.AddHidden(std::make_shared<ReluGradOp>(), {y, kept})[0];
            y = g.AddHidden(std::make_shared<ReshapeOp>(Shape({shape.elements()})), {y})[0];
            y = g.AddHidden(std::make_shared<AllReduceOp>(0.5, 0, 1), {y})[0];
            g.Add(std::make_shared<ScaleOp>(2), {y});
          }};
}

OpCase Normalization(const std::string& name, bool bytes, Shape shape, std::vector<double> mean,
                     std::vector<double> std) {
  return {absl::StrCat("normalize ", name), [=](CaseGraph& g) {
            const ValueId x = bytes ? g.Bytes("x", shape) : g.Input("x", shape);
            g.Add(std::make_shared<NormalizeOp>(bytes ? 1.0 / 255 : 1.5, mean, std, g.dtype()), {x});
          }};
}

// The features of sequences [N, length, features].
OpCase NormalizationOfSequences(bool bytes) {
  return {absl::StrCat("normalize sequences of ", bytes ? "bytes" : "floats"), [=](CaseGraph& g) {
            const Shape shape = {18, 5, 3};
            const ValueId x = bytes ? g.Bytes("x", shape) : g.Input("x", shape);
            const ValueId y = *AddNormalize(0.5, {0.1, 0.2, 0.3}, {1, 2, 0.5}, g.dtype(), x, g.graph());
            g.Add(std::make_shared<ScaleOp>(2), {y});
          }};
}

// Samples within a deviation of the mean.
OpCase NormalizationOfFloats(double mean, double deviation) {
  return {absl::StrCat("normalize floats about ", mean, " by ", deviation), [=](CaseGraph& g) {
            const ValueId x = g.Input("x", {18, 2}, mean - deviation, mean + deviation);
            g.Add(std::make_shared<NormalizeOp>(1, std::vector<double>{mean}, std::vector<double>{deviation},
                                                g.dtype()),
                  {x});
          }};
}

OpCase Classification(int64_t samples, int64_t classes, double range) {
  return {
      absl::StrCat("softmax_cross_entropy ", samples, " samples, ", classes, " classes, to ", range),
      [=](CaseGraph& g) {
        const ValueId logits = g.Input("logits", {samples, classes}, -range, range);
        const ValueId labels = g.Labels("labels", samples, classes);
        const std::vector<ValueId> loss = g.Add(std::make_shared<SoftmaxCrossEntropyOp>(), {logits, labels});
        const ValueId grad_loss = g.Input("grad_loss", {});
        g.Add(std::make_shared<SoftmaxCrossEntropyGradOp>(), {loss[1], labels, grad_loss});
        const ValueId correct = g.Add(std::make_shared<CountCorrectOp>(), {logits, labels})[0];
        g.Add(std::make_shared<AccumulateOp>(std::vector<double>{static_cast<double>(samples), 1.0}),
              {g.Meter("meter", 2), loss[0], correct});
      }};
}

OpCase Reduction(const std::vector<Shape>& shapes, double scale) {
  return {absl::StrCat("all_reduce ", shapes.size(), " tensors"), [=](CaseGraph& g) {
            std::vector<ValueId> grads;
            for (const Shape& shape : shapes) {
              grads.push_back(g.Input(absl::StrCat("grad", grads.size()), shape));
            }
            grads.push_back(g.graph().AddConstant(2, g.dtype(), {3}));
            g.Add(std::make_shared<AllReduceOp>(scale, 0, static_cast<int>(grads.size())), grads);
          }};
}

// Divides a tensor, a variable and a constant.
OpCase Division(double divisor) {
  return {absl::StrCat("divide by ", divisor), [=](CaseGraph& g) {
            const ValueId by =
                g.AddHidden(std::make_shared<ScaleOp>(divisor), {g.graph().AddConstant(1, g.dtype(), {})})[0];
            const auto divide = [&](ValueId x) { g.Add(std::make_shared<DivideOp>(0.75), {x, by}); };
            divide(g.AddHidden(std::make_shared<ScaleOp>(3), {g.Input("x", {2, 5, 3, 3})})[0]);
            divide(g.Variable("sum", {7, 33}, -1, 1, VariableKind::kMeter));
            divide(g.graph().AddConstant(2, g.dtype(), {}));
          }};
}

OpCase Descent(const std::string& name, Shape shape, int64_t step, SgdOp op) {
  return {absl::StrCat("sgd ", name, " step ", step), [=](CaseGraph& g) {
            std::vector<ValueId> inputs = {g.Variable("parameter", shape), g.Input("grad", shape),
                                           g.Number<double>("learning_rate", 0.05),
                                           g.Number<int64_t>("step", step)};
            if (op.momentum != 0) {
              inputs.push_back(g.Variable("buffer", shape, -1, 1, VariableKind::kOptimizerState));
            }
            // Nodes take effect in order: the first op reads the parameter before the step, another reads it
            // after.
            g.Add(std::make_shared<ScaleOp>(1), {inputs[0]});
            g.Add(std::make_shared<SgdOp>(op), inputs);
            g.Add(std::make_shared<ScaleOp>(1), {inputs[0]});
            // The gradient of a parameter without influence on the loss is a constant.
            inputs[1] = g.graph().AddConstant(0, g.dtype(), shape);
            g.Add(std::make_shared<SgdOp>(op), inputs);
          }};
}

// The host may read any value.
OpCase AnyOutput() {
  return {"outputs of every role", [](CaseGraph& g) {
            const ValueId x = g.Input("x", {5, 3});
            const ValueId parameter = g.Variable("parameter", {3});
            const ValueId labels = g.Labels("labels", 5, 3);
            const ValueId constant = g.graph().AddConstant(0.25, g.dtype(), {2, 2});
            const ValueId y = g.Add(std::make_shared<ReluOp>(), {x})[0];
            for (const ValueId value : {x, parameter, labels, constant, y}) g.graph().MarkOutput(value);
          }};
}

// A reshaped variable keeps its value when the variable changes afterwards.
OpCase ReshapeBeforeDescent() {
  return {"reshape of a variable that changes later", [](CaseGraph& g) {
            const ValueId parameter = g.Variable("parameter", {4, 6});
            const ValueId hidden = g.AddHidden(std::make_shared<ReshapeOp>(Shape({3, 8})), {parameter})[0];
            g.Add(std::make_shared<ReshapeOp>(Shape({24})), {parameter});
            g.AddHidden(
                std::make_shared<SgdOp>(0, 0, false, 0),
                {parameter, g.Input("grad", {4, 6}), g.Number("rate", 0.5), g.Number("step", int64_t{0})});
            g.Add(std::make_shared<ScaleOp>(2), {hidden});
            g.Add(std::make_shared<ReshapeOp>(Shape({12, 2})), {parameter});
          }};
}

std::vector<OpCase> MakeOpCases() {
  std::vector<OpCase> cases = {
      Convolution("5x5", {3, 1, 12, 11}, {20, 1, 5, 5}, true, {}),
      Convolution("5x5 to 50 filters", {2, 20, 12, 12}, {50, 20, 5, 5}, true, {}),
      Convolution("3x3 padded, stride 2", {2, 3, 9, 8}, {4, 3, 3, 3}, true,
                  {.stride = {2, 2}, .padding = {1, 1}}),
      Convolution("3x5, uneven", {2, 3, 11, 7}, {4, 3, 3, 5}, true, {.stride = {2, 1}, .padding = {1, 2}}),
      Convolution("dilated", {2, 3, 10, 9}, {4, 3, 3, 3}, true, {.padding = {2, 2}, .dilation = {2, 2}}),
      Convolution("dilated unevenly", {1, 2, 9, 13}, {3, 2, 2, 3}, false, {.dilation = {3, 2}}),
      Convolution("2 groups", {2, 4, 7, 7}, {6, 2, 3, 3}, true, {.padding = {1, 1}, .groups = 2}),
      Convolution("depthwise", {2, 5, 8, 8}, {5, 1, 3, 3}, true, {.padding = {1, 1}, .groups = 5}),
      Convolution("depthwise, 2 filters each", {1, 3, 6, 5}, {6, 1, 3, 2}, false, {.groups = 3}),
      Convolution("1x1, stride 2", {2, 4, 7, 7}, {8, 4, 1, 1}, true, {.stride = {2, 2}}),
      Convolution("1x1, one pixel", {1, 3, 1, 1}, {2, 3, 1, 1}, true, {}),
      Convolution("without bias", {3, 3, 7, 6}, {5, 3, 3, 3}, false, {.padding = {1, 1}}),
      Convolution("17 to 35 channels", {2, 17, 14, 14}, {35, 17, 3, 3}, true, {.padding = {1, 1}}),
      Convolution("padding as wide as the kernel", {2, 2, 4, 5}, {3, 2, 2, 2}, true, {.padding = {2, 2}}),
      Convolution("depthwise, stride 2", {3, 7, 9, 8}, {7, 1, 3, 3}, false,
                  {.stride = {2, 2}, .padding = {1, 1}, .groups = 7}),
      Convolution("3 groups, dilated", {2, 6, 9, 8}, {9, 2, 3, 2}, true,
                  {.padding = {2, 1}, .dilation = {2, 2}, .groups = 3}),
      Convolution("stride beyond the kernel", {2, 2, 9, 10}, {3, 2, 2, 2}, true, {.stride = {3, 4}}),
      MaxPooling("2x2", {2, 3, 8, 6}, {{2, 2}, {2, 2}}),
      MaxPooling("2x2, odd size", {2, 20, 7, 9}, {{2, 2}, {2, 2}}),
      MaxPooling("overlapping", {1, 3, 9, 7}, {{3, 3}, {2, 2}}),
      MaxPooling("padded", {2, 3, 8, 8}, {{3, 3}, {2, 2}, {1, 1}}),
      MaxPooling("uneven", {2, 17, 6, 11}, {{2, 3}, {1, 2}, {1, 0}}),
      MaxPooling("gaps", {1, 2, 9, 9}, {{2, 2}, {3, 4}}),
      MaxPooling("rounded up", {2, 3, 8, 7}, {{3, 3}, {2, 2}, {1, 1}, true}),
      MaxPooling("rounded up unevenly", {1, 2, 6, 9}, {{2, 3}, {3, 2}, {0, 0}, true}),
      MaxPooling("whole plane", {2, 3, 15, 17}, {{15, 17}, {1, 1}}),
      AveragePooling("2x2", {2, 3, 8, 6}, {{2, 2}, {2, 2}}, true),
      AveragePooling("2x2, odd size", {2, 20, 9, 9}, {{2, 2}, {2, 2}}, true),
      AveragePooling("padded, counted", {2, 3, 8, 7}, {{3, 3}, {2, 2}, {1, 1}}, true),
      AveragePooling("padded, not counted", {2, 17, 8, 7}, {{3, 3}, {2, 2}, {1, 1}}, false),
      AveragePooling("uneven", {1, 5, 6, 11}, {{2, 3}, {1, 2}, {1, 1}}, false),
      AveragePooling("gaps", {1, 2, 9, 9}, {{2, 2}, {3, 4}}, true),
      AveragePooling("rounded up, counted", {2, 3, 8, 7}, {{3, 3}, {2, 2}, {1, 1}, true}, true),
      AveragePooling("rounded up, not counted", {1, 3, 6, 9}, {{2, 3}, {3, 2}, {1, 1}, true}, false),
      AveragePooling("whole plane", {3, 4, 7, 5}, {{7, 5}, {1, 1}}, true),
      BatchNormalization({4, 3, 5, 6}, 0.1, 1e-5),
      BatchNormalization({3, 17, 3, 3}, 0.03, 1e-3),
      BatchNormalization({33, 5, 1, 7}, 1, 1e-5),
      BatchNormalization({2, 3, 9}, 0, 1e-5),
      BatchNormalization({19, 7}, 0.1, 1e-5),
      BatchNormalization({9, 4}, 0.1, 1e-5),
      BatchNormalization({37, 16, 9, 7}, 0.1, 1e-5),
      BatchNormalization({5, 264, 3, 2}, 0.1, 1e-5),
      SynchronizedBatchNormalization({4, 3, 5, 6}, 0.1),
      SynchronizedBatchNormalization({3, 17, 3, 3}, 0.03),
      SynchronizedBatchNormalization({2, 3, 9}, 1),
      SynchronizedBatchNormalization({19, 7}, 0.1),
      SynchronizedBatchNormalization({37, 16, 9, 7}, 0.1),
      Dense("with bias", {5, 7}, 4, true),
      Dense("without bias", {5, 7}, 4, false),
      Dense("wide", {9, 130}, 67, true),
      Dense("one by one", {1, 1}, 1, true),
      Dense("3 dimensions", {2, 3, 6}, 5, true),
      Dense("one row", {1, 33}, 3, false),
      Elementwise({1}),
      Elementwise({3, 5, 7}),
      Elementwise({2, 17, 3, 5}),
      Elementwise({64, 33}),
      InPlaceChain({3, 5, 7}),
      InPlaceChain({2, 32, 4, 4}),
      Normalization("bytes, one mean", true, {3, 1, 5, 7}, {0.2860}, {0.3530}),
      Normalization("bytes, a mean for each channel", true, {2, 3, 5, 5}, {0.49, 0.48, 0.45},
                    {0.25, 0.24, 0.26}),
      NormalizationOfSequences(true),
      NormalizationOfSequences(false),
      Normalization("rows", false, {6, 4}, {0.1, 0.2, 0.3, 0.4}, {1, 2, 0.5, 4}),
      // Numbers that are large against their deviation, at float32's maximum, and denormal.
      NormalizationOfFloats(1e6 + 0.4, 4),
      NormalizationOfFloats(1e38, 2e38),
      NormalizationOfFloats(1e-42, 1e-42),
      Classification(1, 2, 1),
      Classification(7, 10, 3),
      Classification(33, 5, 80),
      Reduction({{5}, {3, 7}, {2, 3, 2, 2}}, 0.625),
      Reduction({{1000}}, 1),
  };
  for (const int64_t step : {0, 3}) {
    cases.push_back(Descent("plain", {3, 5}, step, SgdOp(0, 0, false, 0)));
    cases.push_back(Descent("weight decay", {17}, step, SgdOp(0, 0, false, 0.05)));
    cases.push_back(Descent("momentum", {4, 3, 2, 2}, step, SgdOp(0.9, 0, false, 0)));
    cases.push_back(Descent("dampened", {33}, step, SgdOp(0.9, 0.3, false, 0.01)));
    cases.push_back(Descent("nesterov", {2, 9}, step, SgdOp(0.9, 0, true, 0.01)));
  }
  cases.push_back(ReshapeBeforeDescent());
  for (OpCase& loss_case : LossCases()) cases.push_back(std::move(loss_case));
  for (OpCase& layer_case : LayerCases()) cases.push_back(std::move(layer_case));
  for (OpCase& data_case : DataCases()) cases.push_back(std::move(data_case));
  for (OpCase& optimizer_case : OptimizerCases()) cases.push_back(std::move(optimizer_case));
  for (OpCase& scaling_case : LossScalingCases()) cases.push_back(std::move(scaling_case));
  for (OpCase& factor_case : GradientFactorCases()) cases.push_back(std::move(factor_case));
  for (OpCase& sequence_case : SequenceCases()) cases.push_back(std::move(sequence_case));
  cases.push_back(AnyOutput());
  for (const double divisor : {0.0, 3.5}) cases.push_back(Division(divisor));
  return cases;
}

}  // namespace

ValueId CaseGraph::Input(absl::string_view name, Shape shape, double low, double high) {
  inputs_.push_back(UniformTensor(name, dtype_, shape, low, high));
  return graph_.AddInput(name, dtype_, std::move(shape));
}

ValueId CaseGraph::Variable(absl::string_view name, Shape shape, double low, double high, VariableKind kind) {
  variables_.emplace(std::string(name), UniformTensor(name, dtype_, shape, low, high));
  return graph_.AddVariable(name, kind, dtype_, std::move(shape));
}

ValueId CaseGraph::Kept(absl::string_view name, double number) {
  variables_.emplace(std::string(name), Tensor::Of<double>({}, {number}));
  return graph_.AddVariable(name, VariableKind::kOptimizerState, DType::kFloat64, {});
}

ValueId CaseGraph::Meter(absl::string_view name, int64_t size) {
  variables_.emplace(std::string(name), UniformTensor(name, DType::kFloat64, {size}, -1, 1));
  return graph_.AddVariable(name, VariableKind::kMeter, DType::kFloat64, {size});
}

ValueId CaseGraph::Labels(absl::string_view name, int64_t samples, int64_t classes) {
  return Tokens(name, Shape({samples}), classes);
}

ValueId CaseGraph::Tokens(absl::string_view name, Shape shape, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (const double number : Uniform(name, shape.elements(), 0, 1)) {
    tokens.push_back(static_cast<int32_t>(number * static_cast<double>(vocabulary)));
  }
  inputs_.push_back(Tensor::Of<int32_t>(shape, tokens));
  return graph_.AddInput(name, DType::kInt32, std::move(shape));
}

ValueId CaseGraph::Bytes(absl::string_view name, Shape shape) {
  std::vector<uint8_t> bytes;
  for (const double number : Uniform(name, shape.elements(), 0, 256)) {
    bytes.push_back(static_cast<uint8_t>(number));
  }
  inputs_.push_back(Tensor::Of<uint8_t>(shape, bytes));
  return graph_.AddInput(name, DType::kUInt8, std::move(shape));
}

std::vector<ValueId> CaseGraph::AddHidden(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  const absl::StatusOr<std::vector<ValueId>> outputs = graph_.AddNode(std::move(op), std::move(inputs));
  if (!outputs.ok()) {
    ADD_FAILURE() << outputs.status();
    return std::vector<ValueId>(4, 0);
  }
  return *outputs;
}

std::vector<ValueId> CaseGraph::Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  std::vector<ValueId> outputs = AddHidden(std::move(op), std::move(inputs));
  for (const ValueId output : outputs) graph_.MarkOutput(output);
  return outputs;
}

const std::vector<OpCase>& OpCases() {
  static const std::vector<OpCase>& cases = *new std::vector<OpCase>(MakeOpCases());
  return cases;
}

absl::Status WriteVariables(const CaseGraph& graph, Variables& variables) {
  for (const auto& [name, value] : graph.variables()) {
    TANDEM_RETURN_IF_ERROR(variables.Write(name, value));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> RunCase(const CaseGraph& graph, Executable& executable, const Variables& variables,
                                  Communicator* communicator) {
  std::vector<const void*> inputs;
  for (const Tensor& input : graph.inputs()) inputs.push_back(input.raw_data());
  TANDEM_RETURN_IF_ERROR(executable.Run(inputs, communicator));
  RunResult result;
  for (size_t i = 0; i < graph.graph().outputs().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(Tensor output, executable.Output(static_cast<int>(i)));
    result.outputs.push_back(std::move(output));
  }
  for (const std::string& name : variables.names()) {
    TANDEM_ASSIGN_OR_RETURN(Tensor value, variables.Read(name));
    result.variables.emplace(name, std::move(value));
  }
  return result;
}

absl::StatusOr<RunResult> RunCaseOn(Device& device, const CaseGraph& graph) {
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                          device.Compile(graph.graph(), variables.get()));
  TANDEM_RETURN_IF_ERROR(WriteVariables(graph, *variables));
  return RunCase(graph, *executable, *variables);
}

double RelativeError(const Tensor& actual, const Tensor& expected, double least_magnitude) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.shape() != expected.shape()) return kInfinity;
  const Tensor a = actual.CastTo(DType::kFloat64);
  const Tensor e = expected.CastTo(DType::kFloat64);
  double largest = least_magnitude;
  double difference = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.data<double>()[i];
    const double y = e.data<double>()[i];
    if (std::isfinite(x) && std::isfinite(y)) {
      difference = std::max(difference, std::fabs(x - y));
      largest = std::max(largest, std::fabs(y));
    } else if (x != y && !(std::isnan(x) && std::isnan(y))) {
      return kInfinity;
    }
  }
  return difference / largest;
}

}  // namespace tandem
