#include "engine/backend/training_case.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/all_reduce.h"
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

struct Network {
  ValueId labels;
  ValueId logits;
  std::vector<ValueId> loss;  // With the probabilities.
  std::vector<ValueId> parameters;
};

Network AddNetwork(CaseGraph& g, int64_t batch) {
  Network network;
  const auto parameter = [&](const char* name, Shape shape) {
    network.parameters.push_back(g.Variable(name, std::move(shape), -0.3, 0.3));
    return network.parameters.back();
  };
  const PoolGeometry halves = {{2, 2}, {2, 2}};
  ValueId x = g.Bytes("image", {batch, 1, 12, 12});
  network.labels = g.Labels("label", batch, 10);
  x = g.AddHidden(std::make_shared<NormalizeOp>(1.0 / 255, std::vector<double>{0.5},
                                                std::vector<double>{0.25}, g.dtype()),
                  {x})[0];
  x = g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry{}),
                  {x, parameter("conv1.weight", {5, 1, 3, 3}), parameter("conv1.bias", {5})})[0];
  x = g.AddHidden(std::make_shared<MaxPool2dOp>(halves), {x})[0];
  x = g.AddHidden(std::make_shared<ReluOp>(), {x})[0];
  x = g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry{.padding = {1, 1}}),
                  {x, parameter("conv2.weight", {7, 5, 3, 3}), parameter("conv2.bias", {7})})[0];
  x = g.AddHidden(std::make_shared<AveragePool2dOp>(halves, true), {x})[0];
  x = g.AddHidden(std::make_shared<ReshapeOp>(Shape({batch, 7 * 2 * 2})), {x})[0];
  x = g.AddHidden(std::make_shared<LinearOp>(),
                  {x, parameter("dense1.weight", {33, 28}), parameter("dense1.bias", {33})})[0];
  x = g.AddHidden(std::make_shared<ReluOp>(), {x})[0];
  network.logits = g.AddHidden(std::make_shared<LinearOp>(),
                               {x, parameter("dense2.weight", {10, 33}), parameter("dense2.bias", {10})})[0];
  network.loss = g.AddHidden(std::make_shared<SoftmaxCrossEntropyOp>(), {network.logits, network.labels});
  return network;
}

void AddMeter(CaseGraph& g, const Network& network, int64_t batch) {
  const ValueId correct =
      g.AddHidden(std::make_shared<CountCorrectOp>(), {network.logits, network.labels})[0];
  g.AddHidden(std::make_shared<AccumulateOp>(std::vector<double>{static_cast<double>(batch), 1}),
              {g.Meter("meter", 2), network.loss[0], correct});
  g.graph().MarkOutput(network.loss[0]);
  g.graph().MarkOutput(network.logits);
}

}  // namespace

CaseGraph TrainingCase(DType dtype, int64_t batch, double share, int buckets) {
  CaseGraph g(dtype);
  const Network network = AddNetwork(g, batch);
  const ValueId learning_rate = g.Number<double>("learning_rate", 0.05);
  const ValueId step = g.Number<int64_t>("step", 0);
  const size_t count = network.parameters.size();
  std::vector<ValueId> gradients(count, kNoValue);
  std::vector<ValueId> sums(count, kNoValue);
  int next = 0;
  // The gradients of the last parameters come first.
  const auto reduce_what_is_there = [&](size_t ready, ValueId gradient) {
    gradients[ready] = gradient;
    for (; next < buckets; ++next) {
      const size_t begin = count - count * (next + 1) / buckets;
      const size_t end = count - count * next / buckets;
      const std::vector<ValueId> bucket(gradients.begin() + begin, gradients.begin() + end);
      if (std::count(bucket.begin(), bucket.end(), kNoValue) > 0) break;
      const std::vector<ValueId> reduced =
          g.AddHidden(std::make_shared<AllReduceOp>(share, next, static_cast<int>(bucket.size())), bucket);
      std::copy(reduced.begin(), reduced.end(), sums.begin() + begin);
    }
    return absl::OkStatus();
  };
  const absl::StatusOr<std::vector<ValueId>> grads =
      AppendGradients(g.graph(), network.loss[0], network.parameters, reduce_what_is_there);
  if (!grads.ok() || next < buckets) {
    ADD_FAILURE() << grads.status();
    return g;
  }
  for (size_t place = 0; place < count; ++place) {
    const size_t i = buckets > 1 ? count - 1 - place : place;
    const Value& parameter = g.graph().value(network.parameters[i]);
    const ValueId buffer = g.Variable(absl::StrCat(parameter.name, ".momentum"), parameter.shape, 0, 0,
                                      VariableKind::kOptimizerState);
    g.AddHidden(std::make_shared<SgdOp>(0.9, 0, true, 0.001),
                {network.parameters[i], sums[i], learning_rate, step, buffer});
  }
  AddMeter(g, network, batch);
  return g;
}

CaseGraph EvaluationCase(DType dtype, int64_t batch) {
  CaseGraph g(dtype);
  const Network network = AddNetwork(g, batch);
  AddMeter(g, network, batch);
  return g;
}

}  // namespace tandem
