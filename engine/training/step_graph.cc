#include "engine/training/step_graph.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/dealing.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/normalize.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/metrics/evaluator.h"
#include "engine/metrics/meter.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/gradient_reduction.h"
#include "engine/training/layer_selection.h"

namespace tandem {
namespace {

Shape SampleShape(const v1::JobSpec& spec) {
  return Shape(
      std::vector<int64_t>(spec.model().input().shape().begin(), spec.model().input().shape().end()));
}

Shape Batched(int64_t samples, const Shape& sample) {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(std::move(extents));
}

ValueId AddMeter(const v1::JobSpec& spec, const char* name, Graph& graph) {
  return graph.AddVariable(name, VariableKind::kMeter, DType::kFloat64, MeterShape(spec.training()));
}

absl::StatusOr<Network> AddNetwork(const v1::JobSpec& spec, ValueId input, DType dtype, bool training,
                                   Graph& graph, const RandomSource& random = {}) {
  BuildOptions options = BuildOptionsOf(spec);
  options.random = random;
  absl::StatusOr<Network> network = BuildModel(spec.model(), input, dtype, training, graph, options);
  if (network.ok()) return network;
  FieldViolations violations;
  violations.AddAll("model", network.status());
  return violations.ToStatus();
}

// The part that training and validation share.
struct Forward {
  Network network;
  ValueId loss = kNoValue;
  // Inputs of training.
  ValueId learning_rate = kNoValue;
  ValueId step = kNoValue;
};

absl::StatusOr<Forward> AddForward(const v1::JobSpec& spec, const DatasetInfo& data, bool training,
                                   int64_t samples, int64_t first_sample, DType dtype, Graph& graph) {
  ValueId input =
      graph.AddInput(kSamplesInput, DTypeOfSamples(data.sample_type), Batched(samples, SampleShape(spec)));
  const TargetType target_type = training ? data.train_target_type() : data.target_type;
  const ValueId target =
      graph.AddInput(kTargetInput, DTypeOfTargets(target_type),
                     Batched(samples, training ? data.train_target_shape() : data.target_shape));
  Forward forward;
  RandomSource random = {.seed = spec.training().seed(), .first_sample = first_sample};
  if (training) {
    forward.learning_rate = graph.AddInput(kLearningRateInput, DType::kFloat64, Shape());
    forward.step = random.step = graph.AddInput(kStepInput, DType::kInt64, Shape());
  }
  if (data.sample_type != SampleType::kTokens) {
    const ResolvedNormalization& normalization = data.normalization;
    TANDEM_ASSIGN_OR_RETURN(input,
                            graph.Add(std::make_shared<NormalizeOp>(normalization.scale, normalization.mean,
                                                                    normalization.standard_deviation, dtype),
                                      {input}));
  }
  TANDEM_ASSIGN_OR_RETURN(forward.network, AddNetwork(spec, input, dtype, training, graph, random));
  TANDEM_ASSIGN_OR_RETURN(const LossValues loss,
                          AddLoss(spec.training().loss(), forward.network.output, target, graph));
  forward.loss = loss.loss;
  const MeteredValues metered = {.output = forward.network.output,
                                 .target = target,
                                 .loss = loss.loss,
                                 .loss_sum = loss.sum,
                                 .loss_weight = loss.weight};
  const ValueId meter = AddMeter(spec, training ? kTrainingMeter : kValidationMeter, graph);
  TANDEM_RETURN_IF_ERROR(AddToMeter(spec.training(), metered, meter, graph));
  if (!training && Evaluator::IsNeeded(spec.training())) graph.MarkOutput(forward.network.output);
  return forward;
}

// Values of the parameters that learn: of the others there is no gradient.
std::vector<ValueId> LearningParameters(const v1::JobSpec& spec, const StepGraph& step) {
  std::vector<ValueId> learning;
  for (const Parameter& parameter : step.parameters) {
    const bool stays =
        parameter.frozen || IsFrozen(spec.training().optimizer(), step.graph.value(parameter.value));
    if (!stays) learning.push_back(parameter.value);
  }
  return learning;
}

// Declares the variables that the graph of a replica with samples has, without the network that reads them.
absl::Status DeclareVariables(const v1::JobSpec& spec, const DatasetInfo& data, DType dtype,
                              StepGraph& step) {
  Graph whole;
  const DType input_type = data.sample_type == SampleType::kTokens ? DType::kInt32 : dtype;
  const ValueId input = whole.AddInput(kSamplesInput, input_type, Batched(2, SampleShape(spec)));
  const RandomSource random = {.step = whole.AddInput(kStepInput, DType::kInt64, Shape())};
  TANDEM_ASSIGN_OR_RETURN(Network network, AddNetwork(spec, input, dtype, /*training=*/true, whole, random));
  const auto declare = [&](const std::string& name) {
    const Value& value = whole.value(whole.FindVariable(name));
    return step.graph.AddVariable(name, value.variable_kind, dtype, value.shape);
  };
  for (Parameter& parameter : network.parameters) parameter.value = declare(parameter.name);
  for (Statistic& statistic : network.statistics) statistic.value = declare(statistic.name);
  step.parameters = std::move(network.parameters);
  step.statistics = std::move(network.statistics);
  return absl::OkStatus();
}

// Adds up the gradients of a batch's parts in variables.
class GradientSums {
 public:
  // `part` is this part's share of the replica's samples.
  GradientSums(double part, DType dtype, Graph* graph) : part_(part), dtype_(dtype), graph_(graph) {}

  // Adds a gradient to the sum of its parameter, and returns the sum.
  absl::StatusOr<ValueId> Add(ValueId parameter, ValueId gradient) {
    const std::string name = absl::StrCat(kGradientSumPrefix, graph_->value(parameter).name);
    const Shape shape = graph_->value(parameter).shape;
    const ValueId sum = graph_->AddVariable(name, VariableKind::kMeter, dtype_, shape);
    TANDEM_RETURN_IF_ERROR(
        graph_->AddNode(std::make_shared<AccumulateGradientOp>(part_, /*overwrite=*/false), {sum, gradient})
            .status());
    sums_.push_back(sum);
    return sum;
  }

  // Sets them to zero for the next step.
  absl::Status Clear() {
    for (const ValueId sum : sums_) {
      const ValueId zero = graph_->AddConstant(0, dtype_, Shape(graph_->value(sum).shape));
      TANDEM_RETURN_IF_ERROR(
          graph_->AddNode(std::make_shared<AccumulateGradientOp>(1, /*overwrite=*/true), {sum, zero})
              .status());
    }
    return absl::OkStatus();
  }

 private:
  const double part_;
  const DType dtype_;
  Graph* const graph_;
  std::vector<ValueId> sums_;
};

absl::Status AddAverages(const v1::WeightAverage& spec, absl::Span<const ValueId> parameters, Graph& graph) {
  for (const ValueId parameter : parameters) {
    const std::string name = absl::StrCat(kAveragePrefix, graph.value(parameter).name);
    const DType dtype = graph.value(parameter).dtype;
    const Shape shape = graph.value(parameter).shape;
    const ValueId average = graph.AddVariable(name, VariableKind::kOptimizerState, dtype, shape);
    TANDEM_RETURN_IF_ERROR(
        graph.AddNode(std::make_shared<MovingAverageOp>(spec.decay()), {average, parameter}).status());
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<StepShape> PartsOf(const StepShape& whole, int64_t count) {
  count = std::min(count, whole.samples);
  if (count <= 1) return {whole};
  std::vector<StepShape> parts;
  for (const int64_t samples : DealSamples(whole.samples, std::vector<double>(count, 1.0))) {
    StepShape part = whole;
    part.samples = samples;
    part.share_samples = whole.samples;
    part.is_early = true;
    parts.push_back(part);
  }
  parts.back().is_early = false;
  parts.back().first_sample += whole.samples - parts.back().samples;
  return parts;
}

absl::StatusOr<StepGraph> BuildTrainingGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                             const StepShape& shape) {
  StepGraph step;
  Graph& graph = step.graph;
  std::vector<ValueId> targets;
  std::vector<ValueId> gradients;  // Of the targets.
  ValueId learning_rate = kNoValue;
  ValueId steps = kNoValue;
  const int64_t share_samples = shape.share_samples > 0 ? shape.share_samples : shape.samples;
  const double share = static_cast<double>(share_samples) / static_cast<double>(shape.batch_samples);
  absl::optional<GradientSums> sums;  // None where the share is one part.
  if (shape.samples < share_samples) {
    sums.emplace(static_cast<double>(shape.samples) / static_cast<double>(share_samples), shape.dtype,
                 &graph);
  }
  absl::optional<GradientReduction> reduction;  // None where there is one replica.
  if (shape.samples > 0) {
    TANDEM_ASSIGN_OR_RETURN(Forward forward, AddForward(spec, data, /*training=*/true, shape.samples,
                                                        shape.first_sample, shape.dtype, graph));
    learning_rate = forward.learning_rate;
    steps = forward.step;
    step.parameters = std::move(forward.network.parameters);
    step.statistics = std::move(forward.network.statistics);
    targets = LearningParameters(spec, step);
    if (shape.replicas > 1 && !shape.is_early) reduction.emplace(&graph, share, targets);
    std::vector<ValueId> summed(targets.size(), kNoValue);
    const auto take = [&](size_t i, ValueId gradient) -> absl::Status {
      if (sums.has_value()) {
        TANDEM_ASSIGN_OR_RETURN(gradient, sums->Add(targets[i], gradient));
        summed[i] = gradient;
      }
      return reduction.has_value() ? reduction->Add(i, gradient) : absl::OkStatus();
    };
    TANDEM_ASSIGN_OR_RETURN(gradients, AppendGradients(graph, forward.loss, targets, take));
    if (shape.is_early) return step;
    if (sums.has_value()) gradients = summed;
  } else {
    TANDEM_RETURN_IF_ERROR(DeclareVariables(spec, data, shape.dtype, step));
    AddMeter(spec, kTrainingMeter, graph);
    learning_rate = graph.AddInput(kLearningRateInput, DType::kFloat64, Shape());
    steps = graph.AddInput(kStepInput, DType::kInt64, Shape());
    targets = LearningParameters(spec, step);
    if (shape.replicas > 1) reduction.emplace(&graph, share, targets);
    for (size_t i = 0; i < targets.size(); ++i) {
      gradients.push_back(graph.AddConstant(0, shape.dtype, Shape(graph.value(targets[i]).shape)));
      if (reduction.has_value()) TANDEM_RETURN_IF_ERROR(reduction->Add(i, gradients[i]));
    }
  }
  if (targets.empty() && !step.parameters.empty()) {
    return FieldError("training.optimizer.groups", "freeze every parameter; leave one that learns");
  }
  if (reduction.has_value()) gradients = reduction->reduced();
  std::vector<ValueId> parameters;
  std::vector<ValueId> gradients_or_none;
  for (const Parameter& parameter : step.parameters) {
    const auto target = std::find(targets.begin(), targets.end(), parameter.value);
    parameters.push_back(parameter.value);
    gradients_or_none.push_back(target == targets.end() ? kNoValue : gradients[target - targets.begin()]);
  }
  const absl::Status updates =
      AddUpdates(spec.training().optimizer(), parameters, gradients_or_none, learning_rate, steps, graph);
  if (!updates.ok()) {
    FieldViolations violations;
    violations.AddAll("training.optimizer", updates);
    return violations.ToStatus();
  }
  if (sums.has_value()) TANDEM_RETURN_IF_ERROR(sums->Clear());
  if (spec.training().has_weight_average()) {
    TANDEM_RETURN_IF_ERROR(AddAverages(spec.training().weight_average(), targets, graph));
  }
  return step;
}

absl::StatusOr<StepGraph> BuildValidationGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                               int64_t samples, DType dtype) {
  StepGraph step;
  TANDEM_ASSIGN_OR_RETURN(Forward forward,
                          AddForward(spec, data, /*training=*/false, samples, 0, dtype, step.graph));
  step.parameters = std::move(forward.network.parameters);
  step.statistics = std::move(forward.network.statistics);
  return step;
}

}  // namespace tandem
