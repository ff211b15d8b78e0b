#include "tests/golden/training.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/losses/loss.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/gradient_reduction.h"
#include "engine/training/replica_average.h"
#include "tests/golden/layers.h"
#include "tests/golden/losses.h"
#include "tests/golden/optimizers.h"

namespace tandem {

using nlohmann::json;

absl::StatusOr<std::unique_ptr<GoldenTraining>> GoldenTraining::Create(const GoldenCase& golden,
                                                                       std::unique_ptr<Device> device,
                                                                       const GoldenTraining* like,
                                                                       const Scale& scale, Tensor x,
                                                                       Tensor y) {
  if (x.shape().rank() < 2 || y.shape().rank() < 2 || x.shape()[0] != y.shape()[0] || x.shape()[0] < 1) {
    return absl::InvalidArgumentError("x and y do not hold a batch for each step");
  }
  std::unique_ptr<GoldenTraining> training(
      new GoldenTraining(std::move(device), like, std::move(x), std::move(y)));
  TANDEM_RETURN_IF_ERROR(training->Build(golden, scale));
  return training;
}

GoldenTraining::GoldenTraining(std::unique_ptr<Device> device, const GoldenTraining* like, Tensor x, Tensor y)
    : x_(std::move(x)),
      y_(std::move(y)),
      program_(std::move(device), like == nullptr ? nullptr : &like->program_) {}

absl::StatusOr<std::pair<ValueId, ValueId>> GoldenTraining::BuildLoss(const GoldenCase& golden,
                                                                      const Scale& scale, ValueId target) {
  Graph& graph = program_.graph();
  const json attrs = golden.attrs.value("loss", json::object());
  if (scale.weighted_replicas == 0) {
    TANDEM_ASSIGN_OR_RETURN(loss_,
                            AddLoss(graph, attrs, {.input = logits_, .target = target, .target_values = y_}));
    return std::pair(loss_, kNoValue);
  }
  Attributes attributes(attrs);
  if (attributes.Text("type", "") != "cross_entropy") {
    return absl::UnimplementedError("weighted losses other than cross_entropy are not offered yet");
  }
  v1::Loss loss;
  v1::SoftmaxCrossEntropy& entropy = *loss.mutable_softmax_cross_entropy();
  for (const double weight : attributes.Numbers("class_weights")) entropy.add_class_weights(weight);
  if (attributes.Has("ignore_index")) entropy.set_ignore_index(attributes.Whole("ignore_index", 0));
  entropy.set_label_smoothing(attributes.Number("label_smoothing", 0));
  TANDEM_RETURN_IF_ERROR(attributes.Finish());
  TANDEM_ASSIGN_OR_RETURN(const LossValues values,
                          AddLoss(loss, logits_, target, graph, LossReduction::kSumIfWeighted));
  TANDEM_ASSIGN_OR_RETURN(const ValueId total, AddTotal(values.weight, scale.weighted_replicas, &graph));
  TANDEM_ASSIGN_OR_RETURN(loss_, graph.Add(std::make_shared<DivideOp>(1), {values.loss, total}));
  const ValueId one = graph.AddConstant(1, graph.value(total).dtype, Shape());
  TANDEM_ASSIGN_OR_RETURN(const ValueId start, graph.Add(std::make_shared<DivideOp>(1), {one, total}));
  return std::pair(values.loss, start);
}

absl::Status GoldenTraining::Build(const GoldenCase& golden, const Scale& scale) {
  Graph& graph = program_.graph();
  std::map<std::string, ValueId> values = {{"x", program_.Input("x", Row(x_, 0))}};
  const ValueId target = program_.Input("y", Row(y_, 0));
  for (const json& layer : golden.attrs.value("layers", json::array())) {
    std::vector<ValueId> inputs;
    for (const json& input : layer.at("inputs")) {
      const auto value = values.find(input.get<std::string>());
      if (value == values.end()) {
        return absl::InvalidArgumentError(absl::StrCat("there is no layer ", input.dump()));
      }
      inputs.push_back(value->second);
    }
    std::vector<ValueId> weights;
    for (const json& weight : layer.at("weights")) {
      const std::string name = weight.get<std::string>();
      const bool is_statistic = absl::EndsWith(name, ".running_mean") || absl::EndsWith(name, ".running_var");
      TANDEM_ASSIGN_OR_RETURN(const Tensor initial, golden.Get(absl::StrCat("initial.", name)));
      (is_statistic ? statistic_names_ : names_).push_back(name);
      weights.push_back(program_.Variable(
          name, initial, is_statistic ? VariableKind::kStatistic : VariableKind::kParameter));
    }
    TANDEM_ASSIGN_OR_RETURN(logits_, AddOperation(graph, layer, inputs, weights));
    values[layer.at("name").get<std::string>()] = logits_;
  }
  if (logits_ == kNoValue) return absl::InvalidArgumentError("the case has no layers");
  TANDEM_ASSIGN_OR_RETURN(const v1::Optimizer optimizer,
                          ReadOptimizer(golden.attrs.value("optimizer", json::object())));
  TANDEM_ASSIGN_OR_RETURN(const auto loss, BuildLoss(golden, scale, target));

  std::vector<ValueId> parameters;
  for (const std::string& name : names_) parameters.push_back(graph.FindVariable(name));
  TANDEM_ASSIGN_OR_RETURN(grads_, AppendGradients(graph, loss.first, parameters, nullptr, loss.second));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> sums,
                          graph.AddNode(std::make_shared<AllReduceOp>(scale.share, CountAllReduces(graph),
                                                                      static_cast<int>(grads_.size())),
                                        grads_));
  TANDEM_RETURN_IF_ERROR(AddOptimizer(graph, optimizer, parameters, sums));
  graph.MarkOutput(loss_);
  graph.MarkOutput(logits_);
  for (const ValueId grad : grads_) graph.MarkOutput(grad);
  TANDEM_RETURN_IF_ERROR(program_.Compile());
  program_.Set("learning_rate", Tensor::Of<double>({}, {LearningRateOf(optimizer)}));
  return absl::OkStatus();
}

absl::Status GoldenTraining::RunStep(int64_t step, Communicator* communicator) {
  program_.Set("x", Row(x_, step));
  program_.Set("y", Row(y_, step));
  program_.Set("step", Tensor::Of<int64_t>({}, {step}));
  return program_.Run(communicator);
}

absl::Status GoldenTraining::Average(absl::Span<const double> shares, bool state,
                                     Communicator* communicator) {
  Variables& variables = program_.variables();
  for (const std::string& name : variables.names()) {
    TANDEM_ASSIGN_OR_RETURN(const VariableKind kind, variables.kind(name));
    if (kind == VariableKind::kOptimizerState && !state) continue;
    TANDEM_RETURN_IF_ERROR(AverageVariable(name, shares, &variables, communicator));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> GoldenTraining::Loss() const {
  TANDEM_ASSIGN_OR_RETURN(const Tensor loss, program_.Output(loss_));
  return loss.CastTo(DType::kFloat64).data<double>()[0];
}

}  // namespace tandem
