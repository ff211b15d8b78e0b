// Gradient rules against central differences, on odd shapes.

#include <memory>
#include <string>
#include <vector>

#include "engine/backends/reference/gradient_check.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/batch_norm_sync.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/cosine_embedding.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/value_loss.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

class GradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(GradientTest, IsWhatCentralDifferencesSay) { ExpectGradientIsWhatDifferencesSay(GetParam()); }

GradientCase Convolution(const std::string& name, Shape x, Shape weight, bool has_bias,
                         Conv2dGeometry geometry) {
  return {"conv2d " + name, [=](CaseGraph& g) {
            std::vector<ValueId> inputs = {g.Input("x", x), g.Input("weight", weight)};
            if (has_bias) inputs.push_back(g.Input("bias", {weight[0]}));
            return g.AddHidden(std::make_shared<Conv2dOp>(geometry), inputs)[0];
          }};
}

GradientCase MaxPooling(const std::string& name, Shape x, PoolGeometry geometry) {
  return {"max_pool2d " + name, [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<MaxPool2dOp>(geometry), {g.Input("x", x)})[0];
          }};
}

GradientCase AveragePooling(const std::string& name, Shape x, PoolGeometry geometry, bool count_include_pad) {
  return {"average_pool2d " + name, [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<AveragePool2dOp>(geometry, count_include_pad),
                               {g.Input("x", x)})[0];
          }};
}

GradientCase Dense(const std::string& name, Shape x, int64_t units, bool has_bias) {
  return {"linear " + name, [=](CaseGraph& g) {
            std::vector<ValueId> inputs = {g.Input("x", x), g.Input("weight", {units, x[-1]})};
            if (has_bias) inputs.push_back(g.Input("bias", {units}));
            return g.AddHidden(std::make_shared<LinearOp>(), inputs)[0];
          }};
}

GradientCase BatchNormalization(Shape x, bool training) {
  return {
      training ? "batch_norm " + x.ToString() : "batch_norm_inference " + x.ToString(), [=](CaseGraph& g) {
        const Shape channels({x[1]});
        std::vector<ValueId> inputs = {g.Input("x", x), g.Input("weight", channels),
                                       g.Input("bias", channels),
                                       g.Variable("running_mean", channels, -1, 1, VariableKind::kStatistic),
                                       g.Variable("running_var", channels, 0.5, 2, VariableKind::kStatistic)};
        if (!training) return g.AddHidden(std::make_shared<BatchNormInferenceOp>(1e-3), inputs)[0];
        return g.AddHidden(std::make_shared<BatchNormOp>(0.1, 1e-3), inputs)[0];
      }};
}

// With a single replica.
GradientCase SynchronizedBatchNormalization(Shape x) {
  return {"batch_norm_sync " + x.ToString(), [=](CaseGraph& g) {
            const Shape channels({x[1]});
            std::vector<ValueId> inputs = {
                g.Input("x", x), g.Input("weight", channels), g.Input("bias", channels),
                g.Variable("running_mean", channels, -1, 1, VariableKind::kStatistic),
                g.Variable("running_var", channels, 0.5, 2, VariableKind::kStatistic)};
            const ValueId own = g.AddHidden(std::make_shared<BatchNormMomentsOp>(0, 1), {inputs[0]})[0];
            inputs.push_back(g.AddHidden(std::make_shared<AllReduceOp>(1, 0, 1), {own})[0]);
            return g.AddHidden(std::make_shared<BatchNormSyncOp>(0.1, 1e-3, 1), inputs)[0];
          }};
}

INSTANTIATE_TEST_SUITE_P(
    BatchNormalization, GradientTest,
    testing::Values(SynchronizedBatchNormalization({3, 2, 4, 5}), SynchronizedBatchNormalization({7, 3}),
                    BatchNormalization({3, 2, 4, 5}, true), BatchNormalization({7, 3}, true),
                    BatchNormalization({2, 3, 5}, true), BatchNormalization({3, 2, 4, 5}, false),
                    BatchNormalization({7, 3}, false)));

INSTANTIATE_TEST_SUITE_P(Convolution, GradientTest,
                         testing::Values(Convolution("plain", {2, 3, 6, 5}, {4, 3, 3, 2}, true, {}),
                                         Convolution("stride and padding", {2, 2, 7, 6}, {3, 2, 3, 3}, true,
                                                     {.stride = {2, 3}, .padding = {1, 2}}),
                                         Convolution("dilation", {1, 2, 8, 9}, {2, 2, 3, 2}, false,
                                                     {.padding = {2, 1}, .dilation = {2, 3}}),
                                         Convolution("groups", {2, 6, 5, 4}, {4, 3, 2, 3}, true,
                                                     {.padding = {0, 1}, .groups = 2}),
                                         Convolution("depthwise", {1, 3, 5, 5}, {6, 1, 3, 3}, true,
                                                     {.padding = {1, 1}, .groups = 3}),
                                         Convolution("pixel", {1, 2, 1, 1}, {3, 2, 1, 1}, true, {})));

INSTANTIATE_TEST_SUITE_P(
    Pooling, GradientTest,
    testing::Values(MaxPooling("plain", {2, 3, 6, 7}, {{2, 2}, {2, 2}}),
                    MaxPooling("overlapping", {1, 2, 7, 9}, {{3, 2}, {2, 1}, {1, 1}}),
                    MaxPooling("rounded up", {1, 2, 6, 7}, {{3, 2}, {2, 3}, {1, 0}, true}),
                    AveragePooling("rounded up", {1, 2, 6, 7}, {{3, 2}, {2, 3}, {1, 0}, true}, true),
                    AveragePooling("plain", {2, 3, 6, 7}, {{2, 2}, {2, 2}}, true),
                    AveragePooling("counted", {1, 2, 7, 9}, {{3, 2}, {2, 1}, {1, 1}}, true),
                    AveragePooling("not counted", {1, 2, 7, 9}, {{3, 2}, {2, 1}, {1, 1}}, false),
                    AveragePooling("whole plane", {2, 3, 5, 3}, {{5, 3}, {1, 1}}, true)));

INSTANTIATE_TEST_SUITE_P(Dense, GradientTest,
                         testing::Values(Dense("with bias", {5, 7}, 3, true),
                                         Dense("without bias", {1, 4}, 5, false),
                                         Dense("3 dimensions", {2, 3, 5}, 4, true)));

// Distances from kinks are well above the step.
GradientCase ClassLoss(const std::string& name, Shape shape, ClassLossSettings settings, bool mixed = false) {
  return {"class_loss " + name, [=](CaseGraph& g) {
            const ValueId scores = g.Input("scores", shape, -2, 2);
            if (mixed) {
              const ValueId shares = g.Variable("shares", shape, 0, 1);
              return g.AddHidden(std::make_shared<ClassLossOp>(settings), {scores, shares})[0];
            }
            return g.AddHidden(std::make_shared<ClassLossOp>(settings),
                               {scores, g.Labels("labels", shape[0], shape[1])})[0];
          }};
}

GradientCase ValueLoss(const std::string& name, ValueLossSettings settings) {
  return {"value_loss " + name, [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<ValueLossOp>(settings),
                               {g.Input("x", {3, 2, 5}, -2, 2), g.Variable("y", {3, 2, 5}, 0.1, 1)})[0];
          }};
}

GradientCase CosineEmbedding(const std::string& name, bool pairs, bool sum) {
  return {"cosine_embedding " + name, [=](CaseGraph& g) {
            const ValueId x = pairs ? g.Input("pairs", {7, 2, 3}) : g.Input("x", {4, 5});
            const ValueId y = pairs ? g.Labels("alike", 7, 2) : g.Variable("y", {4, 5});
            return g.AddHidden(std::make_shared<CosineEmbeddingOp>(0.1, sum), {x, y})[0];
          }};
}

using ClassMode = ClassLossSettings::Mode;
using ValueMode = ValueLossSettings::Mode;

INSTANTIATE_TEST_SUITE_P(
    Losses, GradientTest,
    testing::Values(
        ClassLoss("plain", {7, 5}, {}), ClassLoss("smoothed", {3, 4}, {.label_smoothing = 0.1}),
        ClassLoss("weighted, smoothed, ignoring", {9, 4},
                  {.label_smoothing = 0.2, .weights = {0.5, 0, 2, 1}, .ignore_index = 2}),
        ClassLoss("mixed", {5, 3}, {.label_smoothing = 0.1, .weights = {0.5, 2, 1}}, true),
        ClassLoss("summed", {5, 3}, {.weights = {0.5, 2, 1}, .sum = true}),
        ClassLoss("log_likelihood", {5, 3}, {.mode = ClassMode::kLogLikelihood, .weights = {0.5, 2, 1}}),
        ClassLoss("hinge", {5, 3}, {.mode = ClassMode::kHinge, .weights = {0.5, 2, 1}}),
        ClassLoss("hinge, squared", {5, 3}, {.mode = ClassMode::kHinge, .p = 2, .margin = 0.7}),
        ValueLoss("squared", {}), ValueLoss("absolute", {.mode = ValueMode::kAbsolute}),
        ValueLoss("huber", {.mode = ValueMode::kHuber, .width = 0.8}),
        ValueLoss("smooth_l1", {.mode = ValueMode::kSmoothL1, .width = 1.5}),
        ValueLoss("logistic", {.mode = ValueMode::kLogistic, .positive_weights = {1, 2, 3, 4, 5}}),
        ValueLoss("kl", {.mode = ValueMode::kKl, .reduction = ValueLossSettings::Reduction::kBatchMean}),
        ValueLoss("kl of logarithms", {.mode = ValueMode::kKlOfLogs}),
        CosineEmbedding("of pairs", true, false), CosineEmbedding("of x and y", false, true)));

INSTANTIATE_TEST_SUITE_P(
    Others, GradientTest,
    testing::Values(
        GradientCase{"relu",
                     [](CaseGraph& g) {
                       return g.AddHidden(std::make_shared<ReluOp>(), {g.Input("x", {3, 5, 7})})[0];
                     }},
        GradientCase{
            "add",
            [](CaseGraph& g) {
              return g.AddHidden(std::make_shared<AddOp>(), {g.Input("a", {3, 5}), g.Input("b", {3, 5})})[0];
            }},
        GradientCase{"several readers",
                     [](CaseGraph& g) {
                       const ValueId x = g.Input("x", {3, 5});
                       const ValueId y = g.AddHidden(std::make_shared<ReluOp>(), {x})[0];
                       const ValueId z = g.AddHidden(std::make_shared<ScaleOp>(-1.5), {x})[0];
                       const ValueId sum = g.AddHidden(std::make_shared<AddOp>(), {y, z})[0];
                       return g.AddHidden(std::make_shared<AddOp>(), {sum, sum})[0];
                     }},
        GradientCase{"scale",
                     [](CaseGraph& g) {
                       return g.AddHidden(std::make_shared<ScaleOp>(-0.3), {g.Input("x", {7})})[0];
                     }},
        GradientCase{
            "reshape",
            [](CaseGraph& g) {
              return g.AddHidden(std::make_shared<ReshapeOp>(Shape({5, 6})), {g.Input("x", {3, 10})})[0];
            }},
        GradientCase{"softmax_cross_entropy", [](CaseGraph& g) {
                       const ValueId logits = g.Input("logits", {7, 5}, -3, 3);
                       return g.AddHidden(std::make_shared<SoftmaxCrossEntropyOp>(),
                                          {logits, g.Labels("labels", 7, 5)})[0];
                     }}));

}  // namespace
}  // namespace tandem
