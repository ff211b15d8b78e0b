// Gradient rules of activations, group normalisations, and ops that join, cut or resize tensors, against
// central differences.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/reference/gradient_check.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/channel_bias.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/dropout.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/group_norm.h"
#include "engine/graph/ops/pad.h"
#include "engine/graph/ops/softmax.h"
#include "engine/graph/ops/upsample.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

class LayerGradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(LayerGradientTest, IsWhatCentralDifferencesSay) { ExpectGradientIsWhatDifferencesSay(GetParam()); }

GradientCase Activation(ActivationRule rule) {
  return {absl::StrCat("activation ", rule.ToString()), [rule](CaseGraph& g) {
            return g.AddHidden(std::make_shared<ActivationOp>(rule), {g.Input("x", {3, 5, 7}, -5, 5)})[0];
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Activation, LayerGradientTest,
    testing::Values(Activation({ActivationFunction::kLeakyRelu, 0.3}),
                    Activation({ActivationFunction::kElu, 0.7}), Activation({ActivationFunction::kGelu}),
                    Activation({ActivationFunction::kGeluTanh}), Activation({ActivationFunction::kSigmoid}),
                    Activation({ActivationFunction::kTanh}), Activation({ActivationFunction::kSilu}),
                    Activation({ActivationFunction::kSoftplus}),
                    Activation({ActivationFunction::kSoftplus, 2.5, 30}),
                    Activation({ActivationFunction::kHardSwish}), Activation({ActivationFunction::kSelu})));

GradientCase SoftmaxAlong(Shape shape, int axis, bool log) {
  return {log ? "log_softmax" : "softmax", [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<SoftmaxOp>(axis, log), {g.Input("x", shape, -2, 2)})[0];
          }};
}

INSTANTIATE_TEST_SUITE_P(Softmax, LayerGradientTest,
                         testing::Values(SoftmaxAlong({3, 7}, 1, false), SoftmaxAlong({3, 7}, 0, true),
                                         SoftmaxAlong({2, 5, 3}, 1, false),
                                         SoftmaxAlong({2, 5, 3, 2}, 1, true)));

GradientCase GroupNormalization(Shape x, int64_t groups) {
  return {absl::StrCat("group_norm ", x.ToString()), [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<GroupNormOp>(groups, 1e-3),
                               {g.Input("x", x), g.Input("weight", {x[1]}), g.Input("bias", {x[1]})})[0];
          }};
}

INSTANTIATE_TEST_SUITE_P(GroupNormalization, LayerGradientTest,
                         testing::Values(GroupNormalization({2, 6, 3, 2}, 2),
                                         GroupNormalization({3, 4, 5}, 4), GroupNormalization({2, 5}, 1)));

GradientCase Resizing(const std::string& name, Shape x, UpsampleRule rule) {
  return {absl::StrCat("upsample ", name), [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<UpsampleOp>(rule), {g.Input("x", x)})[0];
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Upsampling, LayerGradientTest,
    testing::Values(Resizing("nearest", {2, 3, 4, 5}, {.size = {8, 11}, .scale_h = 2, .scale_w = 2.3}),
                    Resizing("nearest, smaller", {1, 2, 7, 5}, {.size = {3, 4}}),
                    Resizing("bilinear", {2, 3, 4, 5}, {UpsampleMode::kBilinear, false, {9, 11}}),
                    Resizing("corners", {1, 2, 5, 3}, {UpsampleMode::kBilinear, true, {7, 7}})));

// conv2d_grad_input as a layer: by its data, its weight and its bias.
GradientCase ConvTransposition(const std::string& name, Shape x, Shape weight, Shape y,
                               Conv2dGeometry geometry) {
  return {absl::StrCat("transposed convolution ", name), [=](CaseGraph& g) {
            const ValueId sum = g.AddHidden(std::make_shared<Conv2dGradInputOp>(geometry, y),
                                            {g.Input("x", x), g.Input("weight", weight)})[0];
            return g.AddHidden(std::make_shared<ChannelBiasOp>(), {sum, g.Input("bias", {y[1]})})[0];
          }};
}

INSTANTIATE_TEST_SUITE_P(
    ConvTransposition, LayerGradientTest,
    testing::Values(ConvTransposition("plain", {2, 3, 4, 5}, {3, 2, 2, 3}, {2, 2, 5, 7}, {}),
                    ConvTransposition("stride and padding", {2, 3, 5, 4}, {3, 4, 3, 3}, {2, 4, 10, 8},
                                      {.stride = {2, 2}, .padding = {1, 1}}),
                    ConvTransposition("groups and dilation", {1, 4, 3, 4}, {4, 3, 2, 2}, {1, 6, 5, 6},
                                      {.dilation = {2, 2}, .groups = 2})));

INSTANTIATE_TEST_SUITE_P(
    Others, LayerGradientTest,
    testing::Values(
        GradientCase{
            "multiply",
            [](CaseGraph& g) {
              const ValueId a = g.Input("a", {3, 5});
              const ValueId y = g.AddHidden(std::make_shared<MultiplyOp>(), {a, g.Input("b", {3, 5})})[0];
              return g.AddHidden(std::make_shared<MultiplyOp>(), {y, y})[0];
            }},
        GradientCase{"pad2d",
                     [](CaseGraph& g) {
                       const ValueId y = g.AddHidden(std::make_shared<Pad2dOp>(Margins{{1, 0}, {2, 3}}),
                                                     {g.Input("x", {2, 3, 4, 5})})[0];
                       return g.AddHidden(std::make_shared<Crop2dOp>(Margins{{2, 0}, {0, 4}}), {y})[0];
                     }},
        GradientCase{"concat",
                     [](CaseGraph& g) {
                       const ValueId a = g.Input("a", {2, 3, 5});
                       return g.AddHidden(std::make_shared<ConcatOp>(1), {a, g.Input("b", {2, 2, 5}), a})[0];
                     }},
        GradientCase{"split",
                     [](CaseGraph& g) {
                       const std::vector<ValueId> parts =
                           g.AddHidden(std::make_shared<SplitOp>(1, std::vector<int64_t>{2, 1, 4}),
                                       {g.Input("x", {3, 7})});
                       return g.AddHidden(std::make_shared<MultiplyOp>(), {parts[0], parts[0]})[0];
                     }},
        GradientCase{"dropout", [](CaseGraph& g) {
                       return g.AddHidden(std::make_shared<DropoutOp>(0.4, 11, 2),
                                          {g.Input("x", {3, 5, 7}), g.Number<int64_t>("step", 9)})[0];
                     }}));

}  // namespace
}  // namespace tandem
