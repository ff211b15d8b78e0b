#include "engine/backend/optimizer_cases.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/muon.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"

namespace tandem {
namespace {

// A step. The states are zero only before the first step.
OpCase Step(Shape shape, int64_t step, std::shared_ptr<const UpdateOp> op) {
  return {
      absl::StrCat(op->kind(), " ", op->attributes(), " ", shape.ToString(), " step ", step),
      [=](CaseGraph& g) {
        std::vector<ValueId> inputs = {g.Variable("parameter", shape), g.Input("grad", shape),
                                       g.Number<double>("learning_rate", 0.05),
                                       g.Number<int64_t>("step", step)};
        for (const absl::string_view name : op->states()) {
          // A mean of squares is above 0 and above the square of the mean.
          const bool signed_state = name == "momentum" || name == "mean" || name == "first_moment";
          const double low = signed_state ? -0.5 : 1;
          const double high = signed_state ? 0.5 : 2;
          const double scale = step == 0 ? 0 : 1;
          inputs.push_back(g.Variable(name, shape, scale * low, scale * high, VariableKind::kOptimizerState));
        }
        // Nodes take effect in order: the first op reads the parameter before the step, another reads it
        // after.
        g.Add(std::make_shared<ScaleOp>(1), {inputs[0]});
        g.Add(op, inputs);
        g.Add(std::make_shared<ScaleOp>(1), {inputs[0]});
      }};
}

// A group of parameters with its own learning rate.
OpCase OtherRate(int64_t step) {
  return {absl::StrCat("sgd at another rate, step ", step), [=](CaseGraph& g) {
            const ValueId parameter = g.Variable("parameter", {5, 3});
            const ValueId rate = g.AddHidden(std::make_shared<ScaleOp>(0.25), {g.Number("rate", 0.5)})[0];
            g.Add(std::make_shared<SgdOp>(0, 0, false, 0.1),
                  {parameter, g.Input("grad", {5, 3}), rate, g.Number<int64_t>("step", step)});
          }};
}

// Steps of several parameters by two ops in turn. Other ops read some parameters between the steps.
OpCase TwoParameterStep(int64_t step, std::shared_ptr<const UpdateOp> even,
                        std::shared_ptr<const UpdateOp> odd) {
  return {
      absl::StrCat(even->kind(), " and ", odd->kind(), " ", odd->attributes(), " of a network, step ", step),
      [=](CaseGraph& g) {
        const std::vector<Shape> shapes = {{5}, {70, 301}, {4, 3, 2, 2}, {1}, {127, 131}, {3}, {17, 2}};
        std::vector<ValueId> parameters;
        for (const Shape& shape : shapes) {
          parameters.push_back(g.Variable(absl::StrCat("parameter", parameters.size()), shape));
        }
        const ValueId rate = g.Number("rate", 0.05);
        const ValueId steps = g.Number<int64_t>("step", step);
        for (size_t i = 0; i < shapes.size(); ++i) {
          const std::shared_ptr<const UpdateOp>& op = i % 2 == 0 ? even : odd;
          std::vector<ValueId> inputs = {parameters[i], g.Input(absl::StrCat("grad", i), shapes[i]), rate,
                                         steps};
          // This gradient is computed after the first steps.
          if (i == 5) {
            inputs[1] = g.AddHidden(
                std::make_shared<ScaleOp>(2),
                {g.AddHidden(std::make_shared<ReshapeOp>(shapes[i]), {g.Input("late", {3, 1})})[0]})[0];
          }
          for (const absl::string_view state : op->states()) {
            inputs.push_back(g.Variable(absl::StrCat(state, "/", i), shapes[i], step == 0 ? 0 : 0.5,
                                        step == 0 ? 0 : 1, VariableKind::kOptimizerState));
          }
          g.Add(op, inputs);
          if (i == 1) g.Add(std::make_shared<ScaleOp>(1), {parameters[2]});
          if (i == 4) g.Add(std::make_shared<ScaleOp>(1), {parameters[4]});
        }
        for (const ValueId parameter : parameters) g.Add(std::make_shared<ScaleOp>(1), {parameter});
      }};
}

// Several averages of parameters and restarted sums of gradients at once.
OpCase ManyChanges() {
  return {"moving_average and accumulate_gradient of several", [](CaseGraph& g) {
            const std::vector<Shape> shapes = {{5}, {70, 301}, {4, 3, 2, 2}};
            std::vector<ValueId> sums;
            for (const Shape& shape : shapes) {
              const std::string name = absl::StrCat("sum", sums.size());
              sums.push_back(g.Variable(name, shape, -1, 1, VariableKind::kMeter));
              g.Add(std::make_shared<AccumulateGradientOp>(0.5, false),
                    {sums.back(), g.Input(name + " grad", shape)});
            }
            // Adds to the same sums again.
            for (size_t i = 0; i < shapes.size(); ++i) {
              g.Add(std::make_shared<AccumulateGradientOp>(0.5, false),
                    {sums[i], g.Input(absl::StrCat("second grad", i), shapes[i])});
            }
            g.Add(std::make_shared<ScaleOp>(1), {sums[1]});
            const ValueId step = g.Number("step", int64_t{100});
            for (size_t i = 0; i < shapes.size(); ++i) {
              g.Add(std::make_shared<MovingAverageOp>(0.9),
                    {g.Variable(absl::StrCat("average", i), shapes[i], -1, 1, VariableKind::kOptimizerState),
                     sums[i], step});
            }
            for (size_t i = 0; i < shapes.size(); ++i) {
              g.Add(std::make_shared<AccumulateGradientOp>(1, true),
                    {sums[i], g.graph().AddConstant(0.25, g.dtype(), Shape(shapes[i]))});
            }
          }};
}

// A moving average after a step, as in training.
OpCase Averaging(Shape shape, int64_t taken) {
  return {absl::StrCat("moving_average after step ", taken), [=](CaseGraph& g) {
            const ValueId parameter = g.Variable("parameter", shape);
            const ValueId step = g.Number("step", taken);
            g.Add(std::make_shared<SgdOp>(0, 0, false, 0),
                  {parameter, g.Input("grad", shape), g.Number("rate", 0.5), step});
            g.Add(std::make_shared<MovingAverageOp>(0.9),
                  {g.Variable("average", shape, -1, 1, VariableKind::kOptimizerState), parameter, step});
          }};
}

// The first part of a batch, a later part, and a step with the sum.
OpCase Accumulation(Shape shape) {
  return {"accumulate_gradient", [=](CaseGraph& g) {
            const ValueId parameter = g.Variable("parameter", shape);
            const ValueId sum = g.Variable("sum", shape, -1, 1, VariableKind::kOptimizerState);
            g.Add(std::make_shared<AccumulateGradientOp>(0.75, true), {sum, g.Input("first", shape)});
            g.Add(std::make_shared<AccumulateGradientOp>(0.25, false), {sum, g.Input("second", shape)});
            const ValueId reduced = g.AddHidden(std::make_shared<AllReduceOp>(0.5, 0, 1), {sum})[0];
            g.Add(std::make_shared<SgdOp>(0, 0, false, 0),
                  {parameter, reduced, g.Number("rate", 0.5), g.Number("step", int64_t{0})});
          }};
}

OpCase Clipping(const std::string& name, ClipGradientsOp::Mode mode, double limit, bool reduced,
                std::vector<Shape> shapes) {
  return {absl::StrCat("clip_gradients ", name), [=](CaseGraph& g) {
            std::vector<ValueId> grads;
            for (const Shape& shape : shapes) {
              grads.push_back(g.Input(absl::StrCat("grad", grads.size()), shape, -3, 3));
            }
            // A value with another reader must stay unchanged.
            grads.push_back(g.AddHidden(std::make_shared<ScaleOp>(2), {g.Input("shared", {4, 3})})[0]);
            const ValueId shared = grads.back();
            grads.push_back(g.graph().AddConstant(0.5, g.dtype(), {3}));
            const int count = static_cast<int>(grads.size());
            if (reduced) grads = g.AddHidden(std::make_shared<AllReduceOp>(0.5, 0, count), grads);
            g.Add(std::make_shared<ClipGradientsOp>(mode, limit, count), grads);
            g.Add(std::make_shared<ScaleOp>(3), {shared});
          }};
}

}  // namespace

std::vector<OpCase> OptimizerCases() {
  std::vector<OpCase> cases;
  for (const int64_t step : {0, 3}) {
    const auto add = [&](Shape shape, auto op) {
      cases.push_back(Step(std::move(shape), step, std::make_shared<decltype(op)>(op)));
    };
    add({3, 5}, AdamOp({}));
    add({33}, AdamOp({.weight_decay = 0.1}));
    add({2, 9}, AdamOp({.weight_decay = 0.1, .decoupled = true, .amsgrad = true}));
    add({4, 3, 2, 2}, AdamOp({.beta2 = 0.99, .amsgrad = true}));
    add({17}, NadamOp({.weight_decay = 0.1}));
    add({3, 5}, NadamOp({.weight_decay = 0.1, .decoupled = true}));
    add({5, 7}, AdamaxOp({.weight_decay = 0.1}));
    add({70, 301}, LambOp({.weight_decay = 0.1}));
    add({3}, LambOp({}));
    add({19}, AdagradOp({.lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator = 0.5}));
    add({3, 5}, AdadeltaOp({.weight_decay = 0.1}));
    add({33}, RmspropOp({}));
    add({3, 5}, RmspropOp({.momentum = 0.9}));
    add({2, 9}, RmspropOp({.weight_decay = 0.1, .centered = true}));
    add({33}, RmspropOp({.momentum = 0.9, .centered = true}));
    add({3, 5}, LionOp({.weight_decay = 0.1}));
    add({7, 5}, MuonOp({}));
    add({17, 40}, MuonOp({.nesterov = false, .weight_decay = 0, .match_adamw = true}));
    add({1, 9}, MuonOp({.steps = 2, .coefficients = {2, -1.5, 0.5}}));
    cases.push_back(OtherRate(step));
    const auto network = [&](auto even, auto odd) {
      cases.push_back(TwoParameterStep(step, std::make_shared<decltype(even)>(even),
                                       std::make_shared<decltype(odd)>(odd)));
    };
    network(SgdOp(0.9, 0, true, 0.1), SgdOp(0.9, 0, true, 0));
    network(AdamOp({.weight_decay = 0.1}), AdamOp({}));
    network(NadamOp({}), AdamOp({}));
    network(LambOp({.weight_decay = 0.1}), LambOp({}));
    network(RmspropOp({}), LionOp({}));
  }
  // The decay while it grows, and after it has grown.
  for (const int64_t taken : {0, 5, 1000}) cases.push_back(Averaging({3, 5}, taken));
  cases.push_back(Accumulation({17}));
  cases.push_back(ManyChanges());
  using Mode = ClipGradientsOp::Mode;
  for (const bool reduced : {false, true}) {
    const std::string where = reduced ? ", reduced" : "";
    cases.push_back(Clipping("by norm" + where, Mode::kByNorm, 2.5, reduced, {{5}, {170, 301}}));
    cases.push_back(Clipping("by a norm that is not reached" + where, Mode::kByNorm, 1e6, reduced, {{5, 3}}));
    cases.push_back(Clipping("by value" + where, Mode::kByValue, 0.5, reduced, {{5}, {2, 3, 2, 2}}));
  }
  return cases;
}

}  // namespace tandem
