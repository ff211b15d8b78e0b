#include "engine/backend/layer_cases.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/channel_bias.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/dropout.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/group_norm.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pad.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/softmax.h"
#include "engine/graph/ops/upsample.h"

namespace tandem {
namespace {

const ActivationRule kRules[] = {{ActivationFunction::kLeakyRelu, 0.3},
                                 {ActivationFunction::kElu, 0.7},
                                 {ActivationFunction::kGelu},
                                 {ActivationFunction::kGeluTanh},
                                 {ActivationFunction::kSigmoid},
                                 {ActivationFunction::kTanh},
                                 {ActivationFunction::kSilu},
                                 {ActivationFunction::kSoftplus},
                                 {ActivationFunction::kSoftplus, 2.5, 3},
                                 {ActivationFunction::kHardSwish},
                                 {ActivationFunction::kSelu}};

OpCase Activations(Shape shape, double range) {
  return {absl::StrCat("activation ", shape.ToString(), " to ", range), [=](CaseGraph& g) {
            const ValueId x = g.Input("x", shape, -range, range);
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(1), {x})[0];
            const ValueId grad_y = g.Input("grad_y", shape);
            for (const ActivationRule& rule : kRules) {
              g.Add(std::make_shared<ActivationOp>(rule), {x});
              g.Add(std::make_shared<ActivationGradOp>(rule), {hidden, grad_y});
            }
          }};
}

OpCase SoftmaxAlong(Shape shape, int axis) {
  return {absl::StrCat("softmax ", shape.ToString(), " along ", axis), [=](CaseGraph& g) {
            const ValueId x = g.Input("x", shape, -9, 9);
            const ValueId grad_y = g.Input("grad_y", shape);
            for (const bool log : {false, true}) {
              const ValueId y = g.Add(std::make_shared<SoftmaxOp>(axis, log), {x})[0];
              g.Add(std::make_shared<SoftmaxGradOp>(axis, log), {y, grad_y});
            }
          }};
}

OpCase Concatenation(int axis, const std::vector<Shape>& shapes) {
  return {absl::StrCat("concat ", shapes.size(), " tensors along ", axis), [=](CaseGraph& g) {
            std::vector<ValueId> parts;
            std::vector<int64_t> sizes;
            for (const Shape& shape : shapes) {
              parts.push_back(g.Input(absl::StrCat("x", parts.size()), shape));
              sizes.push_back(shape[axis]);
            }
            const ValueId y = g.Add(std::make_shared<ConcatOp>(axis), parts)[0];
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(2), {y})[0];
            g.Add(std::make_shared<SplitOp>(axis, sizes), {hidden});
          }};
}

// Checks that a sample's dropped elements depend neither on its place in the batch nor on the direction.
OpCase Dropping(Shape shape, double rate, int64_t first_sample, int64_t step_input = 7) {
  return {absl::StrCat("dropout ", shape.ToString(), " ", rate, " from sample ", first_sample, " step input ",
                       step_input),
          [=](CaseGraph& g) {
            const ValueId x = g.Input("x", shape, 1, 2);
            const ValueId step = g.Number<int64_t>("step", step_input);
            const auto op = std::make_shared<DropoutOp>(rate, 0x123456789abcdefu, first_sample);
            g.Add(op, {x, step});
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(1), {x})[0];
            g.Add(std::make_shared<ReluOp>(), {g.AddHidden(op, {hidden, step})[0]});
          }};
}

OpCase Resizing(const std::string& name, Shape x, UpsampleRule rule) {
  return {absl::StrCat("upsample ", name), [=](CaseGraph& g) {
            const ValueId y = g.Add(std::make_shared<UpsampleOp>(rule), {g.Input("x", x)})[0];
            const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
            g.Add(std::make_shared<UpsampleGradOp>(rule, x), {grad_y});
          }};
}

OpCase Padding(Shape x, Margins margins) {
  return {absl::StrCat("pad2d ", x.ToString(), " ", margins.ToString()), [=](CaseGraph& g) {
            const ValueId y = g.Add(std::make_shared<Pad2dOp>(margins), {g.Input("x", x)})[0];
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(2), {y})[0];
            g.Add(std::make_shared<Crop2dOp>(Margins{margins.after, margins.before}), {hidden});
          }};
}

OpCase GroupNormalization(Shape x, int64_t groups) {
  return {
      absl::StrCat("group_norm ", x.ToString(), " in ", groups), [=](CaseGraph& g) {
        const ValueId input = g.Input("x", x, 1, 4);
        const ValueId weight = g.Variable("weight", {x[1]});
        const ValueId bias = g.Variable("bias", {x[1]});
        const std::vector<ValueId> y =
            g.Add(std::make_shared<GroupNormOp>(groups, 1e-4), {input, weight, bias});
        g.Add(std::make_shared<GroupNormGradOp>(groups), {input, g.Input("grad_y", x), weight, y[1], y[2]});
      }};
}

OpCase Products(Shape shape) {
  return {absl::StrCat("multiply ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId a = g.Input("a", shape);
            const ValueId b = g.Variable("b", shape);
            const ValueId y = g.Add(std::make_shared<MultiplyOp>(), {a, b})[0];
            const ValueId hidden = g.AddHidden(std::make_shared<MultiplyOp>(), {y, y})[0];
            g.Add(std::make_shared<MultiplyOp>(), {b, hidden});
          }};
}

OpCase ChannelBiases(Shape shape) {
  return {absl::StrCat("channel_bias ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId bias = g.Variable("bias", {shape[1]});
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(2), {g.Input("x", shape)})[0];
            const ValueId y = g.Add(std::make_shared<ChannelBiasOp>(), {hidden, bias})[0];
            g.Add(std::make_shared<ChannelBiasGradOp>(), {y});
          }};
}

// The output of a convolution, in a backend's own layout, passes through all of these ops.
OpCase BetweenConvolutions(int64_t samples, int64_t channels) {
  return {absl::StrCat("between convolutions of ", samples, " samples, ", channels, " channels"),
          [=](CaseGraph& g) {
            const Shape image({samples, channels, 5, 4});
            const Conv2dGeometry same = {.padding = {1, 1}};
            const ValueId weight = g.Variable("weight", {channels, channels, 3, 3});
            const ValueId x = g.AddHidden(std::make_shared<Conv2dOp>(same), {g.Input("x", image), weight})[0];
            const auto through = [&](std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
              const ValueId y = g.AddHidden(std::move(op), std::move(inputs))[0];
              const Shape wide({channels, g.graph().value(y).shape[1], 3, 3});
              const std::string name = absl::StrCat("weight", g.graph().nodes().size());
              return g.Add(std::make_shared<Conv2dOp>(same), {y, g.Variable(name, wide)})[0];
            };
            through(std::make_shared<ActivationOp>(ActivationRule{ActivationFunction::kElu}), {x});
            through(std::make_shared<ActivationOp>(ActivationRule{ActivationFunction::kSigmoid}), {x});
            through(std::make_shared<ActivationOp>(ActivationRule{ActivationFunction::kSoftplus, 2}), {x});
            through(std::make_shared<SoftmaxOp>(1, false), {x});
            through(std::make_shared<MultiplyOp>(), {x, x});
            through(std::make_shared<ConcatOp>(1), {x, g.Input("other", image), x});
            through(std::make_shared<ConcatOp>(2), {x, x});
            through(std::make_shared<ConcatOp>(0), {x, x});
            through(std::make_shared<SplitOp>(1, std::vector<int64_t>{channels - 1, 1}), {x});
            through(std::make_shared<DropoutOp>(0.4, 3, 5), {x, g.Number<int64_t>("step", 2)});
            through(std::make_shared<ChannelBiasOp>(), {x, g.Variable("bias", {channels})});
            through(std::make_shared<UpsampleOp>(UpsampleRule{.size = {10, 6}}), {x});
            through(std::make_shared<Pad2dOp>(Margins{{0, 1}, {2, 0}}), {x});
            through(std::make_shared<Crop2dOp>(Margins{{0, 1}, {2, 0}}), {x});
            through(std::make_shared<GroupNormOp>(channels, 1e-5),
                    {x, g.Variable("scale", {channels}), g.Variable("shift", {channels})});
            g.Add(std::make_shared<ChannelBiasGradOp>(),
                  {g.AddHidden(std::make_shared<Conv2dGradInputOp>(same, image),
                               {g.Input("grad", image), weight})[0]});
          }};
}

// Bytes become images, exactly, in a backend's own layout and type. Then ops follow that keep this layout.
OpCase NormalizedImages(int64_t samples, int64_t channels) {
  return {
      absl::StrCat("normalized images of ", channels, " channels, ", samples, " samples"), [=](CaseGraph& g) {
        const Shape image({samples, channels, 9, 8});
        const auto normalize = std::make_shared<NormalizeOp>(1.0 / 256, std::vector<double>{0.5},
                                                             std::vector<double>{0.5}, g.dtype());
        const ValueId x = g.AddHidden(normalize, {g.Bytes("x", image)})[0];
        for (const PoolGeometry& geometry :
             {PoolGeometry{{2, 2}, {2, 2}}, PoolGeometry{{3, 3}, {2, 2}, {1, 1}},
              PoolGeometry{{3, 2}, {1, 3}, {0, 1}, true}, PoolGeometry{{9, 8}, {1, 1}}}) {
          const auto gradient = std::make_shared<MaxPool2dGradOp>(geometry, image);
          const std::vector<ValueId> y = g.Add(std::make_shared<MaxPool2dOp>(geometry), {x});
          g.Add(gradient, {y[0], y[1]});
          // Flattened and reshaped back, as before a dense layer.
          const std::vector<ValueId> flat = g.AddHidden(std::make_shared<MaxPool2dOp>(geometry), {x});
          const Shape& pooled = g.graph().value(flat[0]).shape;
          const ValueId rows = g.AddHidden(
              std::make_shared<ReshapeOp>(Shape({samples, pooled.elements() / samples})), {flat[0]})[0];
          const ValueId doubled = g.Add(std::make_shared<ScaleOp>(2), {rows})[0];
          const ValueId back = g.AddHidden(std::make_shared<ReshapeOp>(pooled), {doubled})[0];
          g.Add(gradient, {back, flat[1]});
          for (const bool count_padding : {false, true}) {
            const ValueId mean = g.Add(std::make_shared<AveragePool2dOp>(geometry, count_padding), {x})[0];
            const ValueId grad =
                g.AddHidden(std::make_shared<AveragePool2dGradOp>(geometry, count_padding, image), {mean})[0];
            g.Add(std::make_shared<ReluGradOp>(), {x, grad});
          }
        }
        g.Add(std::make_shared<DropoutOp>(0.5, 3, 5), {x, g.Number<int64_t>("step", 2)});
        g.Add(std::make_shared<ActivationOp>(ActivationRule{ActivationFunction::kGelu}), {x});
        const ValueId rows =
            g.AddHidden(std::make_shared<ReshapeOp>(Shape({samples, channels * 72})), {x})[0];
        g.Add(std::make_shared<ScaleOp>(2), {rows});
        g.Add(std::make_shared<Pad2dOp>(Margins{{0, 1}, {2, 0}}), {x});
        g.Add(std::make_shared<Crop2dOp>(Margins{{0, 1}, {2, 0}}), {x});
        const UpsampleRule resizing = {UpsampleMode::kBilinear, false, {4, 13}};
        const ValueId resized = g.Add(std::make_shared<UpsampleOp>(resizing), {x})[0];
        g.Add(std::make_shared<UpsampleGradOp>(resizing, image), {resized});
        for (const int axis : {0, 1, 2, 3}) {
          const ValueId twice = g.Add(std::make_shared<ConcatOp>(axis), {x, x})[0];
          const int64_t extent = g.graph().value(twice).shape[axis];
          g.Add(std::make_shared<SplitOp>(axis, std::vector<int64_t>{1, extent - 1}), {twice});
        }
      }};
}

}  // namespace

std::vector<OpCase> LayerCases() {
  const UpsampleMode bilinear = UpsampleMode::kBilinear;
  return {
      Activations({3, 5, 7}, 5),
      Activations({18, 33}, 30),
      SoftmaxAlong({4, 7}, 1),
      SoftmaxAlong({2, 5, 3, 4}, 1),
      SoftmaxAlong({2, 5, 3, 4}, 3),
      SoftmaxAlong({17, 3}, 0),
      SoftmaxAlong({1, 1}, 1),
      SoftmaxAlong({3, 1337}, 1),
      Concatenation(1, {{2, 3, 4, 3}, {2, 2, 4, 3}, {2, 4, 4, 3}}),
      Concatenation(0, {{2, 3}, {1, 3}}),
      Concatenation(2, {{3, 2, 5}, {3, 2, 1}}),
      Concatenation(1, {{5, 1}}),
      Dropping({3, 5, 7}, 0.5, 0),
      Dropping({19, 6}, 0.1, 3),
      Dropping({2, 1}, 0, 0),
      Dropping({1, 1000}, 0.999, 1000000),
      Dropping({5, 6, 3, 3}, 0.5, 2, DropoutOp::StepInput(7, 11)),
      Resizing("nearest, 2x", {2, 3, 4, 5}, {.size = {8, 10}, .scale_h = 2, .scale_w = 2}),
      Resizing("nearest, to a size", {1, 2, 5, 7}, {.size = {13, 4}}),
      Resizing("nearest, 3x and 1.7x", {2, 1, 3, 7}, {.size = {9, 11}, .scale_h = 3, .scale_w = 1.7}),
      Resizing("bilinear, 2x", {2, 3, 4, 5}, {bilinear, false, {8, 10}, 2, 2}),
      Resizing("bilinear, corners", {1, 2, 5, 4}, {bilinear, true, {7, 9}}),
      Resizing("bilinear, smaller", {1, 3, 9, 8}, {bilinear, false, {4, 3}}),
      Resizing("bilinear, to one pixel", {1, 3, 5, 4}, {bilinear, true, {1, 1}}),
      Resizing("bilinear, from one pixel", {2, 2, 1, 1}, {bilinear, true, {3, 2}}),
      Padding({2, 3, 4, 5}, {{1, 0}, {2, 3}}),
      Padding({17, 1, 1, 2}, {{0, 0}, {0, 1}}),
      GroupNormalization({2, 6, 4, 5}, 2),
      GroupNormalization({2, 3, 5, 5}, 3),
      GroupNormalization({3, 4}, 1),
      GroupNormalization({17, 6, 7}, 3),
      GroupNormalization({3, 32, 9, 8}, 4),
      Products({3, 5, 7}),
      Products({33, 2}),
      ChannelBiases({2, 3, 5, 7}),
      ChannelBiases({9, 17}),
      BetweenConvolutions(2, 3),
      BetweenConvolutions(32, 5),
      BetweenConvolutions(19, 16),
      NormalizedImages(2, 1),
      NormalizedImages(3, 5),
      NormalizedImages(2, 16),
      NormalizedImages(1, 36),
      NormalizedImages(1, 96),
  };
}

}  // namespace tandem
