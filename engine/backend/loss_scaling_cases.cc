#include "engine/backend/loss_scaling_cases.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/muon.h"
#include "engine/graph/ops/sgd.h"
#include "engine/graph/ops/unscale_gradients.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The scale before a step.
struct Before {
  double scale = 1024;
  double good = 0;
};

ValueId Scale(CaseGraph& g, double scale) {
  return g.Variable("scale", {}, scale, scale, VariableKind::kOptimizerState);
}

// Returns the op's inputs without gradients. Two of five steps were skipped.
std::vector<ValueId> Inputs(CaseGraph& g, ValueId scale, double good) {
  return {scale, g.Kept("good", good), g.Kept("skipped", 2), g.Meter("meter", 1),
          g.Number<int64_t>("step", 5)};
}

// Returns apply, taken and the gradients.
std::vector<ValueId> Unscale(CaseGraph& g, Before before, const std::vector<ValueId>& gradients) {
  std::vector<ValueId> inputs = Inputs(g, Scale(g, before.scale), before.good);
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  const LossScalingSettings settings = {.growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 3};
  std::vector<ValueId> outputs = g.AddHidden(
      std::make_shared<UnscaleGradientsOp>(settings, static_cast<int>(gradients.size())), std::move(inputs));
  g.graph().MarkOutput(outputs[0]);
  g.graph().MarkOutput(outputs[1]);
  return outputs;
}

// Gradients of different origin: shared with another reader, from a bucket, and equal to `constant`
// everywhere.
OpCase Unscaling(const std::string& name, Before before, double constant, bool reduced) {
  return {absl::StrCat("unscale_gradients ", name, reduced ? ", reduced" : ""), [=](CaseGraph& g) {
            std::vector<ValueId> gradients = {
                g.Input("small", {5}, -3, 3), g.Input("large", {170, 301}, -3, 3),
                g.AddHidden(std::make_shared<ScaleOp>(2), {g.Input("shared", {4, 3})})[0]};
            const ValueId shared = gradients.back();
            gradients.push_back(g.graph().AddConstant(constant, g.dtype(), {1030}));
            const int count = static_cast<int>(gradients.size());
            if (reduced) gradients = g.AddHidden(std::make_shared<AllReduceOp>(0.5, 0, count), gradients);
            const std::vector<ValueId> outputs = Unscale(g, before, gradients);
            for (int i = 0; i < count - 1; ++i) g.graph().MarkOutput(outputs[2 + i]);
            if (constant == constant && constant != kInfinity) g.graph().MarkOutput(outputs.back());
            g.Add(std::make_shared<ScaleOp>(3), {shared});
          }};
}

// A step of several parameters, with a moving average. One of the gradients is `constant`.
OpCase Step(std::shared_ptr<const UpdateOp> op, double constant, bool clips) {
  return {absl::StrCat("unscale_gradients by ", constant, ", ", op->kind(), " ", op->attributes()),
          [=](CaseGraph& g) {
            const std::vector<Shape> shapes = {{5, 2}, {70, 31}, {3, 9}};
            std::vector<ValueId> parameters;
            std::vector<ValueId> gradients;
            for (const Shape& shape : shapes) {
              parameters.push_back(g.Variable(absl::StrCat("parameter", parameters.size()), shape));
              gradients.push_back(gradients.size() < 2
                                      ? g.Input(absl::StrCat("grad", gradients.size()), shape, -900, 900)
                                      : g.graph().AddConstant(constant, g.dtype(), Shape(shape)));
            }
            const std::vector<ValueId> outputs = Unscale(g, {}, gradients);
            gradients.assign(outputs.begin() + 2, outputs.end());
            if (clips) {
              gradients = g.AddHidden(
                  std::make_shared<ClipGradientsOp>(ClipGradientsOp::Mode::kByNorm, 2.5, 3), gradients);
            }
            const ValueId rate = g.Number("rate", 0.05);
            for (size_t i = 0; i < shapes.size(); ++i) {
              std::vector<ValueId> inputs = {parameters[i], gradients[i], rate, outputs[1]};
              for (const absl::string_view state : op->states()) {
                inputs.push_back(g.Variable(absl::StrCat(state, "/", i), shapes[i], 0.5, 1,
                                            VariableKind::kOptimizerState));
              }
              inputs.push_back(outputs[0]);
              g.Add(op, inputs);
            }
            g.Add(std::make_shared<MovingAverageOp>(0.9),
                  {g.Variable("average", shapes[1], -1, 1, VariableKind::kOptimizerState), parameters[1],
                   outputs[1], outputs[0]});
          }};
}

// The gradients of a loss that a variable multiplies.
OpCase ScaledLoss(bool metered) {
  return {absl::StrCat("a scaled loss", metered ? ", metered" : ""), [=](CaseGraph& g) {
            const ValueId scale = Scale(g, 128);
            const std::vector<ValueId> parameters = {g.Variable("weight", {10, 7}), g.Variable("bias", {10})};
            const ValueId logits = g.AddHidden(std::make_shared<LinearOp>(),
                                               {g.Input("x", {6, 7}), parameters[0], parameters[1]})[0];
            const ValueId labels = g.Labels("label", 6, 10);
            const ValueId loss = g.AddHidden(std::make_shared<SoftmaxCrossEntropyOp>(), {logits, labels})[0];
            if (metered) g.Add(std::make_shared<CountCorrectOp>(), {logits, labels});
            const absl::StatusOr<std::vector<ValueId>> gradients =
                AppendGradients(g.graph(), loss, parameters, nullptr, scale);
            if (!gradients.ok()) {
              ADD_FAILURE() << gradients.status();
              return;
            }
            std::vector<ValueId> inputs = Inputs(g, scale, 2);
            inputs.insert(inputs.end(), gradients->begin(), gradients->end());
            g.Add(std::make_shared<UnscaleGradientsOp>(LossScalingSettings{.growth_interval = 3}, 2),
                  std::move(inputs));
            g.graph().MarkOutput(loss);
          }};
}

}  // namespace

std::vector<OpCase> LossScalingCases() {
  using Op = UnscaleGradientsOp;
  std::vector<OpCase> cases;
  for (const bool reduced : {false, true}) {
    cases.push_back(Unscaling("that are finite", {}, 0.5, reduced));
    cases.push_back(Unscaling("of which one is not finite", {.good = 2}, kInfinity, reduced));
  }
  cases.push_back(Unscaling("of which one is no number", {.scale = 2}, kNaN, false));
  cases.push_back(Unscaling("that are finite once more", {.good = 2}, 0.5, false));
  cases.push_back(Unscaling("at the least scale", {.scale = Op::kLeastScale}, kInfinity, false));
  cases.push_back(Unscaling("below the least scale", {.scale = 0.25}, kInfinity, false));
  cases.push_back(Unscaling("near the most", {.scale = Op::kMostScale / 2, .good = 2}, 0.5, false));
  cases.push_back(Unscaling("beyond the most", {.scale = 2 * Op::kMostScale, .good = 2}, 0.5, false));
  for (const double constant : {0.25, kInfinity}) {
    const auto step = [&](auto op, bool clips = false) {
      cases.push_back(Step(std::make_shared<decltype(op)>(op), constant, clips));
    };
    step(SgdOp(0.9, 0.3, false, 0.1), /*clips=*/true);
    step(SgdOp(0, 0, false, 0));
    step(AdamOp({.weight_decay = 0.1, .decoupled = true, .amsgrad = true}));
    step(NadamOp({}));
    step(AdamaxOp({}));
    step(LambOp({.weight_decay = 0.1}));
    step(AdagradOp({.lr_decay = 0.1}));
    step(AdadeltaOp({}));
    step(RmspropOp({.momentum = 0.9}));
    step(LionOp({}));
    step(MuonOp({}));
  }
  cases.push_back(ScaledLoss(false));
  cases.push_back(ScaledLoss(true));
  return cases;
}

}  // namespace tandem
