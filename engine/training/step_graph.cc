#include "engine/training/step_graph.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/dealing.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/batch_norm_sync.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/gradient_factors.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/unscale_gradients.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/metrics/evaluator.h"
#include "engine/metrics/meter.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/gradient_reduction.h"
#include "engine/training/layer_selection.h"
#include "engine/training/resident_data.h"

namespace tandem {
namespace {

ValueId AddMeter(const v1::JobSpec& spec, const char* name, Graph& graph) {
  return graph.AddVariable(name, VariableKind::kMeter, DType::kFloat64, MeterShape(spec.training()));
}

// Returns a training graph's share of the samples of all replicas.
BatchShare BatchShareOf(const v1::JobSpec& spec, const StepShape& shape) {
  BatchShare batch;
  batch.replicas = shape.replicas;
  batch.rank = shape.rank;
  batch.share = static_cast<double>(shape.samples) / static_cast<double>(shape.batch_samples);
  if (spec.replicas().has_parameter_averaging()) {
    batch.fault =
        "is true, but with replicas.parameter_averaging each replica takes steps of its own; use all_reduce";
  } else if (spec.training().accumulation_steps() > 1) {
    batch.fault = "is true, but training.accumulation_steps computes a batch in parts; leave one of them out";
  }
  return batch;
}

absl::StatusOr<Network> AddNetwork(const v1::JobSpec& spec, ValueId input, DType dtype, bool training,
                                   Graph& graph, const RandomSource& random = {},
                                   const BatchShare& batch = {}) {
  BuildOptions options = BuildOptionsOf(spec);
  options.random = random;
  options.batch = batch;
  absl::StatusOr<Network> network = BuildModel(spec.model(), input, dtype, training, graph, options);
  if (network.ok()) return network;
  return UnderField("model", network.status());
}

// Adds a batch as the graph's first inputs give it, not yet normalised.
absl::StatusOr<ResidentBatch> AddBatch(const v1::JobSpec& spec, const DatasetInfo& data, bool training,
                                       const StepShape& shape, Graph& graph) {
  if (shape.resident) {
    return AddResidentBatch(spec, data, training ? DataSplit::kTraining : DataSplit::kValidation,
                            shape.samples, graph);
  }
  ResidentBatch batch;
  batch.samples = graph.AddInput(kSamplesInput, DTypeOfSamples(data.sample_type),
                                 InputShapeOf(spec.model()).Batched(shape.samples));
  const TargetKind target_type = training ? data.train_target_type() : data.target_type;
  batch.targets =
      graph.AddInput(kTargetInput, DTypeOfTargets(target_type),
                     (training ? data.train_target_shape() : data.target_shape).Batched(shape.samples));
  return batch;
}

// Adds the network over a batch. `step` is kNoValue in validation.
absl::StatusOr<Network> AddNormalizedNetwork(const v1::JobSpec& spec, const DatasetInfo& data,
                                             ValueId samples, ValueId step, const StepShape& shape,
                                             Graph& graph) {
  if (data.sample_type != SampleType::kTokens) {
    const ResolvedNormalization& normalization = data.normalization;
    TANDEM_ASSIGN_OR_RETURN(
        samples, AddNormalize(normalization.scale, normalization.mean, normalization.standard_deviation,
                              shape.dtype, samples, graph));
  }
  const bool training = step != kNoValue;
  const RandomSource random = {
      .seed = spec.training().seed(), .step = step, .first_sample = shape.first_sample};
  return AddNetwork(spec, samples, shape.dtype, training, graph, random,
                    training ? BatchShareOf(spec, shape) : BatchShare());
}

// The common part of training and validation.
struct Forward {
  Network network;
  ValueId loss = kNoValue;
  // The sum of the weights of the graph's samples, if the loss is weighted. Otherwise kNoValue.
  ValueId loss_weight = kNoValue;
  int64_t loss_rows = 0;  // The samples of the graph, or the positions in them.
  // Inputs of training.
  ValueId learning_rate = kNoValue;
  ValueId step = kNoValue;
};

absl::StatusOr<Forward> AddForward(const v1::JobSpec& spec, const DatasetInfo& data, bool training,
                                   const StepShape& shape, Graph& graph,
                                   LossReduction reduction = LossReduction::kMean) {
  TANDEM_ASSIGN_OR_RETURN(const ResidentBatch batch, AddBatch(spec, data, training, shape, graph));
  Forward forward;
  if (training) {
    forward.learning_rate = graph.AddInput(kLearningRateInput, DType::kFloat64, Shape());
    forward.step = graph.AddInput(kStepInput, DType::kInt64, Shape());
  }
  TANDEM_ASSIGN_OR_RETURN(forward.network,
                          AddNormalizedNetwork(spec, data, batch.samples, forward.step, shape, graph));
  const double deviation = data.preparation.has_value() ? data.preparation->target_deviation() : 0;
  TANDEM_ASSIGN_OR_RETURN(const LossValues loss,
                          AddLoss(InScaleOf(deviation, spec.training().loss()), forward.network.output,
                                  batch.targets, graph, reduction));
  forward.loss = loss.loss;
  if (reduction == LossReduction::kSumIfWeighted) forward.loss_weight = loss.weight;
  const Value& target = graph.value(batch.targets);
  forward.loss_rows = target.dtype == DType::kInt32 ? target.shape.elements() : shape.samples;
  const MeteredValues metered = {.output = forward.network.output,
                                 .target = batch.targets,
                                 .loss = loss.loss,
                                 .loss_sum = loss.sum,
                                 .loss_weight = loss.weight};
  const ValueId meter = AddMeter(spec, training ? kTrainingMeter : kValidationMeter, graph);
  TANDEM_RETURN_IF_ERROR(AddToMeter(spec.training(), metered, meter, graph));
  if (!training && Evaluator::IsNeeded(spec.training())) graph.MarkOutput(forward.network.output);
  return forward;
}

// Returns the values of the trained parameters. Marks the others as frozen, so that they get no gradient.
std::vector<ValueId> LearningParameters(const v1::JobSpec& spec, StepGraph& step) {
  std::vector<ValueId> learning;
  for (Parameter& parameter : step.parameters) {
    parameter.frozen =
        parameter.frozen || IsFrozen(spec.training().optimizer(), step.graph.value(parameter.value));
    if (!parameter.frozen) learning.push_back(parameter.value);
  }
  return learning;
}

// Adds up the gradients of a batch's parts in variables.
class GradientSums {
 public:
  // A gradient is multiplied by `factor`.
  GradientSums(double factor, Graph* graph) : factor_(factor), graph_(graph) {}

  // Adds a gradient to the sum of its parameter, and returns the sum.
  absl::StatusOr<ValueId> Add(ValueId parameter, ValueId gradient) {
    return AddTo(absl::StrCat(kGradientSumPrefix, graph_->value(parameter).name), factor_, gradient);
  }
  // Adds the weights of a part's samples to their sum, and returns the sum.
  absl::StatusOr<ValueId> AddWeight(ValueId weight) { return AddTo(kLossWeightSum, 1, weight); }

  // Sets the sums to zero for the next step.
  absl::Status Clear() {
    for (const ValueId sum : sums_) {
      const Value& value = graph_->value(sum);
      const ValueId zero = graph_->AddConstant(0, value.dtype, Shape(value.shape));
      TANDEM_RETURN_IF_ERROR(
          graph_->AddNode(std::make_shared<AccumulateGradientOp>(1, /*overwrite=*/true), {sum, zero})
              .status());
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ValueId> AddTo(absl::string_view name, double factor, ValueId term) {
    const DType dtype = graph_->value(term).dtype;
    const ValueId sum =
        graph_->AddVariable(name, VariableKind::kMeter, dtype, Shape(graph_->value(term).shape));
    TANDEM_RETURN_IF_ERROR(
        graph_->AddNode(std::make_shared<AccumulateGradientOp>(factor, /*overwrite=*/false), {sum, term})
            .status());
    sums_.push_back(sum);
    return sum;
  }

  const double factor_;
  Graph* const graph_;
  std::vector<ValueId> sums_;
};

// A graph up to the gradients.
struct Backward {
  std::vector<ValueId> targets;    // Parameters that learn.
  std::vector<ValueId> gradients;  // Of the targets. Reduced if there are several replicas.
  // Inputs.
  ValueId learning_rate = kNoValue;
  ValueId steps = kNoValue;
  absl::optional<GradientSums> sums;  // Nothing if the share has a single part.
  // Whether the step counts, if only the run can tell.
  ValueId apply = kNoValue;
};

bool ScalesLoss(const v1::JobSpec& spec) { return spec.training().precision() == v1::PRECISION_FLOAT16; }

ValueId AddLossScale(DType dtype, Graph& graph) {
  return graph.AddVariable(kLossScale, VariableKind::kOptimizerState, dtype, Shape());
}

// Divides the gradients by the scale. Sets whether the step counts.
absl::Status AddUnscaling(const v1::LossScaling& scaling, DType dtype, Backward& backward, Graph& graph) {
  if (backward.gradients.empty()) return absl::OkStatus();
  ValueId scale = graph.FindVariable(kLossScale);
  if (scale == kNoValue) scale = AddLossScale(dtype, graph);
  const auto number = [&](const char* name) {
    return graph.AddVariable(name, VariableKind::kOptimizerState, DType::kFloat64, Shape());
  };
  const ValueId good = number(kGoodSteps);
  const ValueId skipped = number(kSkippedSteps);
  const ValueId meter = graph.AddVariable(kSkippedMeter, VariableKind::kMeter, DType::kFloat64, Shape({1}));
  std::vector<ValueId> inputs = {scale, good, skipped, meter, backward.steps};
  inputs.insert(inputs.end(), backward.gradients.begin(), backward.gradients.end());
  const LossScalingSettings settings = {.growth_factor = scaling.growth_factor(),
                                        .backoff_factor = scaling.backoff_factor(),
                                        .growth_interval = scaling.growth_interval()};
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          graph.AddNode(std::make_shared<UnscaleGradientsOp>(
                                            settings, static_cast<int>(backward.gradients.size())),
                                        std::move(inputs)));
  backward.apply = outputs[0];
  backward.steps = outputs[1];
  backward.gradients.assign(outputs.begin() + UnscaleGradientsOp::kFirstResult, outputs.end());
  return absl::OkStatus();
}

// Whether the backward pass takes sums over all replicas, which it weights by shares itself.
bool NormalizesTogether(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->kind() == "batch_norm_sync"; });
}

// The factors of a graph's gradients.
struct GradientScale {
  // The gradient of the loss begins with this value; kNoValue means 1.
  ValueId start = kNoValue;
  // The factor of this replica's gradients in the reduction.
  double share = 1;
  // For a weighted loss with added parts: gradients are multiplied by `rows` and divided by `weight`, the sum
  // over the whole batch. kNoValue: no division remains.
  ValueId weight = kNoValue;
  double rows = 1;
};

// For a weighted loss, which is a sum. Its gradient is divided by the weights of the whole batch, over all
// replicas and parts. So a single replica, several replicas and several parts minimise the same mean.
absl::StatusOr<GradientScale> AddWeightedScale(const v1::JobSpec& spec, const StepShape& shape,
                                               const Forward& forward, absl::optional<GradientSums>& sums,
                                               Graph& graph) {
  const DType dtype = graph.value(forward.loss).dtype;
  const ValueId one =
      ScalesLoss(spec) ? AddLossScale(shape.dtype, graph) : graph.AddConstant(1, dtype, Shape());
  GradientScale scale;
  ValueId weight = forward.loss_weight;
  if (sums.has_value()) {
    // The weights of later parts are not known yet, so the sums are divided after the last part. Until then
    // gradients have about the size of a mean's gradients.
    scale.rows = static_cast<double>(forward.loss_rows / shape.samples * shape.batch_samples);
    TANDEM_ASSIGN_OR_RETURN(scale.start, graph.Add(std::make_shared<ScaleOp>(1 / scale.rows), {one}));
    TANDEM_ASSIGN_OR_RETURN(weight, sums->AddWeight(weight));
    if (shape.is_early) return scale;
  }
  TANDEM_ASSIGN_OR_RETURN(weight, AddTotal(weight, shape.replicas, &graph));
  if (sums.has_value()) {
    scale.weight = weight;
    return scale;
  }
  // The backward pass of synchronised batch norm weights by shares itself, so its gradients lack the share.
  if (NormalizesTogether(graph)) {
    scale.share = static_cast<double>(shape.samples) / static_cast<double>(shape.batch_samples);
  }
  TANDEM_ASSIGN_OR_RETURN(scale.start, graph.Add(std::make_shared<DivideOp>(1 / scale.share), {one, weight}));
  return scale;
}

// For a loss that is the mean over the graph's samples.
GradientScale AddMeanScale(const v1::JobSpec& spec, const StepShape& shape, int64_t share_samples,
                           ValueId loss, Graph& graph) {
  GradientScale scale;
  if (shape.replicas > 1) {
    scale.share = static_cast<double>(share_samples) / static_cast<double>(shape.batch_samples);
  }
  if (ScalesLoss(spec)) {
    scale.start = AddLossScale(shape.dtype, graph);
  } else if (scale.share != 1 && !NormalizesTogether(graph)) {
    // The loss's gradient starts with the replica's share, which saves a pass over all gradients before the
    // reduction.
    scale.start = graph.AddConstant(scale.share, graph.value(loss).dtype, Shape());
    scale.share = 1;
  }
  return scale;
}

// For a replica with samples.
absl::StatusOr<Backward> AddBackward(const v1::JobSpec& spec, const DatasetInfo& data, const StepShape& shape,
                                     StepGraph& step) {
  Graph& graph = step.graph;
  const int64_t share_samples = shape.share_samples > 0 ? shape.share_samples : shape.samples;
  const bool is_part = shape.samples < share_samples;
  Backward backward;
  TANDEM_ASSIGN_OR_RETURN(
      Forward forward,
      AddForward(spec, data, /*training=*/true, shape, graph,
                 is_part || shape.replicas > 1 ? LossReduction::kSumIfWeighted : LossReduction::kMean));
  const bool is_weighted = forward.loss_weight != kNoValue;
  if (is_part) {
    backward.sums.emplace(
        is_weighted ? 1 : static_cast<double>(shape.samples) / static_cast<double>(share_samples), &graph);
  }
  backward.learning_rate = forward.learning_rate;
  backward.steps = forward.step;
  step.parameters = std::move(forward.network.parameters);
  step.statistics = std::move(forward.network.statistics);
  backward.targets = LearningParameters(spec, step);
  GradientScale scale;
  if (is_weighted) {
    TANDEM_ASSIGN_OR_RETURN(scale, AddWeightedScale(spec, shape, forward, backward.sums, graph));
  } else {
    scale = AddMeanScale(spec, shape, share_samples, forward.loss, graph);
  }
  absl::optional<GradientReduction> reduction;
  if (shape.replicas > 1 && !shape.is_early) {
    reduction.emplace(&graph, scale.share, backward.targets, spec.replicas().all_reduce());
  }
  std::vector<ValueId> summed(backward.targets.size(), kNoValue);
  const auto take = [&](size_t i, ValueId gradient) -> absl::Status {
    if (backward.sums.has_value()) {
      TANDEM_ASSIGN_OR_RETURN(gradient, backward.sums->Add(backward.targets[i], gradient));
      if (scale.weight != kNoValue) {
        TANDEM_ASSIGN_OR_RETURN(gradient,
                                graph.Add(std::make_shared<DivideOp>(scale.rows), {gradient, scale.weight}));
      }
      summed[i] = gradient;
    }
    return reduction.has_value() ? reduction->Add(i, gradient) : absl::OkStatus();
  };
  TANDEM_ASSIGN_OR_RETURN(backward.gradients,
                          AppendGradients(graph, forward.loss, backward.targets, take, scale.start));
  if (backward.sums.has_value()) backward.gradients = summed;
  if (reduction.has_value()) backward.gradients = reduction->reduced();
  return backward;
}

// Returns the shape of a replica with samples, as the base of the graph of a replica without samples.
StepShape ShapeWithSamples(StepShape shape) {
  shape.samples = 2;
  shape.batch_samples = std::max(shape.batch_samples, shape.samples);
  return shape;
}

ValueId AddZero(const Value& like, Graph& graph) {
  return graph.AddConstant(0, like.dtype, Shape(like.shape));
}

// Adds the reductions of `others` to the graph of a replica without samples, and the resulting updates of
// running statistics and of the factors of compression. Returns the results of the reductions, and restored
// gradients, by the values of `others`. A scale of 0 makes this replica's part zero, because the reduction
// may overwrite its zeros. The replica keeps its errors for its next step.
absl::StatusOr<std::map<ValueId, ValueId>> AddIdleReductions(const Graph& others, Graph& graph) {
  const auto variable = [&](ValueId id) { return graph.FindVariable(others.value(id).name); };
  const auto declare = [&](ValueId id) {
    const Value& value = others.value(id);
    return graph.AddVariable(value.name, value.variable_kind, value.dtype, value.shape);
  };
  for (const ValueId id : others.variables()) {
    if (others.value(id).variable_kind == VariableKind::kResidual) declare(id);
  }
  std::map<ValueId, ValueId> reduced;
  for (const Node& node : others.nodes()) {
    if (node.op->kind() == "all_reduce") {
      const auto& op = static_cast<const AllReduceOp&>(*node.op);
      std::vector<ValueId> zeros;
      for (const ValueId input : node.inputs) zeros.push_back(AddZero(others.value(input), graph));
      TANDEM_ASSIGN_OR_RETURN(
          const std::vector<ValueId> outputs,
          graph.AddNode(std::make_shared<AllReduceOp>(0, op.bucket, op.count), std::move(zeros)));
      for (size_t i = 0; i < outputs.size(); ++i) reduced[node.outputs[i]] = outputs[i];
    } else if (node.op->kind() == "orthonormalize") {
      TANDEM_ASSIGN_OR_RETURN(reduced[node.outputs[0]], graph.Add(node.op, {reduced.at(node.inputs[0])}));
    } else if (node.op->kind() == "restore_gradient") {
      using Restore = RestoreGradientOp;
      TANDEM_ASSIGN_OR_RETURN(const ValueId gradient,
                              graph.Add(node.op, {reduced.at(node.inputs[Restore::kBasis]),
                                                  reduced.at(node.inputs[Restore::kOther]),
                                                  declare(node.inputs[Restore::kStart])}));
      // A reshape follows.
      const Node& reshape = others.node(node.id + 1);
      TANDEM_ASSIGN_OR_RETURN(reduced[reshape.outputs[0]], graph.Add(reshape.op, {gradient}));
    } else if (node.op->kind() == "batch_norm_sync") {
      const double momentum = static_cast<const BatchNormSyncOp&>(*node.op).momentum;
      TANDEM_RETURN_IF_ERROR(
          graph
              .AddNode(std::make_shared<BatchNormRunningOp>(momentum),
                       {reduced.at(node.inputs[5]), variable(node.inputs[3]), variable(node.inputs[4])})
              .status());
    }
  }
  return reduced;
}

// For a replica without samples: joins all reductions of the others and adds nothing to them.
absl::StatusOr<Backward> AddIdleBackward(const v1::JobSpec& spec, const DatasetInfo& data,
                                         const StepShape& shape, StepGraph& step) {
  Graph& graph = step.graph;
  StepGraph others;
  TANDEM_ASSIGN_OR_RETURN(const Backward theirs, AddBackward(spec, data, ShapeWithSamples(shape), others));
  const auto declare = [&](ValueId id) {
    const Value& value = others.graph.value(id);
    return graph.AddVariable(value.name, value.variable_kind, value.dtype, value.shape);
  };
  const auto variable = [&](ValueId id) { return graph.FindVariable(others.graph.value(id).name); };
  Backward backward;
  step.parameters = others.parameters;
  step.statistics = others.statistics;
  for (Parameter& parameter : step.parameters) parameter.value = declare(parameter.value);
  for (Statistic& statistic : step.statistics) statistic.value = declare(statistic.value);
  AddMeter(spec, kTrainingMeter, graph);
  backward.learning_rate = graph.AddInput(kLearningRateInput, DType::kFloat64, Shape());
  backward.steps = graph.AddInput(kStepInput, DType::kInt64, Shape());
  TANDEM_ASSIGN_OR_RETURN(const auto reduced, AddIdleReductions(others.graph, graph));
  for (size_t i = 0; i < theirs.targets.size(); ++i) {
    backward.targets.push_back(variable(theirs.targets[i]));
    const auto found = reduced.find(theirs.gradients[i]);
    backward.gradients.push_back(
        found == reduced.end() ? AddZero(others.graph.value(theirs.targets[i]), graph) : found->second);
  }
  return backward;
}

// Adds moving averages of everything that a step changes: `parameters` and the statistics of trained layers.
absl::Status AddAverages(const v1::WeightAverage& spec, absl::Span<const ValueId> parameters,
                         const std::vector<Statistic>& statistics, const Backward& backward, Graph& graph) {
  const auto add = [&](ValueId averaged, VariableKind kind) {
    const std::string name = absl::StrCat(kAveragePrefix, graph.value(averaged).name);
    const DType dtype = graph.value(averaged).dtype;
    const Shape shape = graph.value(averaged).shape;
    const ValueId average = graph.AddVariable(name, kind, dtype, shape);
    std::vector<ValueId> inputs = {average, averaged, backward.steps};
    if (backward.apply != kNoValue) inputs.push_back(backward.apply);
    return graph.AddNode(std::make_shared<MovingAverageOp>(spec.decay()), std::move(inputs)).status();
  };
  for (const ValueId parameter : parameters) {
    TANDEM_RETURN_IF_ERROR(add(parameter, VariableKind::kOptimizerState));
  }
  for (const Statistic& statistic : statistics) {
    if (!statistic.frozen) TANDEM_RETURN_IF_ERROR(add(statistic.value, VariableKind::kStatistic));
  }
  return absl::OkStatus();
}

// Makes the running statistics of batch normalisation hold the newest batch alone.
void ForgetEarlierBatches(google::protobuf::RepeatedPtrField<v1::Layer>* layers) {
  for (v1::Layer& layer : *layers) {
    if (layer.has_batch_norm()) layer.mutable_batch_norm()->set_momentum(1);
    if (layer.has_repeat()) ForgetEarlierBatches(layer.mutable_repeat()->mutable_layers());
    if (!layer.has_residual()) continue;
    ForgetEarlierBatches(layer.mutable_residual()->mutable_layers());
    ForgetEarlierBatches(layer.mutable_residual()->mutable_shortcut());
  }
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
  TANDEM_ASSIGN_OR_RETURN(Backward backward, shape.samples > 0 ? AddBackward(spec, data, shape, step)
                                                               : AddIdleBackward(spec, data, shape, step));
  if (shape.is_early) return step;
  const std::vector<ValueId>& targets = backward.targets;
  if (targets.empty() && !step.parameters.empty()) {
    return FieldError("training.optimizer.groups", "freeze every parameter; leave one that learns");
  }
  if (ScalesLoss(spec)) {
    TANDEM_RETURN_IF_ERROR(AddUnscaling(spec.training().loss_scaling(), shape.dtype, backward, graph));
  }
  std::vector<ValueId> parameters;
  std::vector<ValueId> gradients_or_none;
  for (const Parameter& parameter : step.parameters) {
    const auto target = std::find(targets.begin(), targets.end(), parameter.value);
    parameters.push_back(parameter.value);
    gradients_or_none.push_back(target == targets.end() ? kNoValue
                                                        : backward.gradients[target - targets.begin()]);
  }
  TANDEM_RETURN_IF_ERROR(
      UnderField("training.optimizer",
                 AddUpdates(spec.training().optimizer(), parameters, gradients_or_none,
                            backward.learning_rate, backward.steps, graph, backward.apply,
                            shape.replicas > 1 ? UpdateOrder::kLastFirst : UpdateOrder::kAsGiven)));
  if (backward.sums.has_value()) TANDEM_RETURN_IF_ERROR(backward.sums->Clear());
  if (spec.training().has_weight_average()) {
    TANDEM_RETURN_IF_ERROR(
        AddAverages(spec.training().weight_average(), targets, step.statistics, backward, graph));
  }
  return step;
}

absl::StatusOr<StepGraph> BuildValidationGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                               int64_t samples, DType dtype, bool resident) {
  StepGraph step;
  TANDEM_ASSIGN_OR_RETURN(
      Forward forward,
      AddForward(spec, data, /*training=*/false,
                 StepShape{.samples = samples, .dtype = dtype, .resident = resident}, step.graph));
  step.parameters = std::move(forward.network.parameters);
  step.statistics = std::move(forward.network.statistics);
  return step;
}

absl::StatusOr<StepGraph> BuildStatisticsGraph(const v1::JobSpec& job, const DatasetInfo& data,
                                               const StepShape& shape) {
  v1::JobSpec spec = job;
  ForgetEarlierBatches(spec.mutable_model()->mutable_layers());
  const bool is_idle = shape.samples == 0;
  const StepShape whole = is_idle ? ShapeWithSamples(shape) : shape;
  StepGraph step;
  TANDEM_ASSIGN_OR_RETURN(const ResidentBatch batch,
                          AddBatch(spec, data, /*training=*/true, whole, step.graph));
  const ValueId number = step.graph.AddInput(kStepInput, DType::kInt64, Shape());
  TANDEM_ASSIGN_OR_RETURN(Network network,
                          AddNormalizedNetwork(spec, data, batch.samples, number, whole, step.graph));
  step.parameters = std::move(network.parameters);
  step.statistics = std::move(network.statistics);
  if (!is_idle) return step;

  StepGraph idle;
  idle.graph.AddInput(kStepInput, DType::kInt64, Shape());
  for (Statistic& statistic : step.statistics) {
    const Value& value = step.graph.value(statistic.value);
    statistic.value = idle.graph.AddVariable(value.name, value.variable_kind, value.dtype, value.shape);
  }
  TANDEM_RETURN_IF_ERROR(AddIdleReductions(step.graph, idle.graph).status());
  idle.statistics = std::move(step.statistics);
  return idle;
}

}  // namespace tandem
