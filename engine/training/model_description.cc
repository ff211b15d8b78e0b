#include "engine/training/model_description.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "engine/base/status_macros.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/memory_plan.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "engine/training/layer_selection.h"

namespace tandem {
namespace {

// A network in its own graph, without the rest of a step.
struct BuiltNetwork {
  Graph graph;
  ModelTrace trace;
  Network network;
};

absl::Status Build(const v1::Model& model, int64_t samples, bool training, BuiltNetwork& built) {
  const ValueId input =
      built.graph.AddInput("input", InputTypeOf(model), InputShapeOf(model).Batched(samples));
  RandomSource random;
  if (training) random.step = built.graph.AddInput("step", DType::kInt64, Shape());
  TANDEM_ASSIGN_OR_RETURN(built.network, BuildModel(model, input, DType::kFloat32, training, built.graph,
                                                    {.trace = &built.trace, .random = random}));
  return absl::OkStatus();
}

int64_t VariableBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const ValueId variable : graph.variables()) bytes += DenseBytes(graph.value(variable));
  return bytes;
}

// Adds the figures of each layer. Layers within a block own their figures.
void AddLayers(const BuiltNetwork& built, v1::ModelDescription& description) {
  const Graph& graph = built.graph;
  std::vector<bool> counted(graph.nodes().size(), false);
  size_t parameters = 0;
  size_t statistics = 0;
  for (const BuiltLayer& layer : built.trace.layers) {
    v1::LayerDescription& line = *description.add_layers();
    line.set_name(layer.name);
    line.set_kind(layer.kind);
    for (const std::string& input : layer.inputs) line.add_inputs(input);
    const Shape& output = graph.value(layer.output).shape;
    for (int i = 1; i < output.rank(); ++i) line.add_output_shape(output[i]);
    line.set_output_bytes(DenseBytes(graph.value(layer.output)));
    double operations = 0;
    for (NodeId id = layer.first_node; id < layer.end_node; ++id) {
      if (counted[id]) continue;
      counted[id] = true;
      operations += graph.CostOf(graph.node(id)).flops;
    }
    line.set_operations(std::llround(operations));
    int64_t bytes = 0;
    int64_t learned = 0;
    for (; parameters < layer.end_parameter; ++parameters) {
      const Parameter& parameter = built.network.parameters[parameters];
      learned += parameter.shape.elements();
      bytes += DenseBytes(graph.value(parameter.value));
    }
    for (; statistics < layer.end_statistic; ++statistics) {
      bytes += DenseBytes(graph.value(built.network.statistics[statistics].value));
    }
    line.set_parameters(learned);
    line.set_parameter_bytes(bytes);
    description.set_parameters(description.parameters() + learned);
    description.set_parameter_bytes(description.parameter_bytes() + bytes);
    description.set_operations(description.operations() + line.operations());
    // A block's output comes from a layer within it, or from its own nodes.
    const bool block = layer.kind == "residual" || layer.kind == "repeat";
    if (!block || operations > 0) {
      description.set_output_bytes(description.output_bytes() + line.output_bytes());
    }
  }
}

// Adds a loss that accepts any output, because gradients begin from a loss.
absl::StatusOr<LossValues> AddSomeLoss(const Value& output, ValueId value, Graph& graph) {
  v1::Loss loss;
  if (output.shape.rank() <= 3) {
    loss.mutable_softmax_cross_entropy();
    const ValueId labels = graph.AddInput("target", DType::kInt32, output.shape.UpTo(-1));
    return AddLoss(loss, value, labels, graph);
  }
  loss.mutable_mse();
  return AddLoss(loss, value, graph.AddInput("target", DType::kFloat32, output.shape), graph);
}

// Returns the bytes, or nothing if the network cannot be trained alone.
absl::optional<int64_t> TrainingBytes(const v1::Model& model, int64_t samples) {
  BuiltNetwork built;
  if (!Build(model, samples, /*training=*/true, built).ok()) return absl::nullopt;
  const ValueId output = built.network.output;
  const absl::StatusOr<LossValues> loss = AddSomeLoss(built.graph.value(output), output, built.graph);
  if (!loss.ok()) return absl::nullopt;
  std::vector<ValueId> targets;
  for (const Parameter& parameter : built.network.parameters) targets.push_back(parameter.value);
  const absl::StatusOr<std::vector<ValueId>> gradients = AppendGradients(built.graph, loss->loss, targets);
  if (!gradients.ok()) return absl::nullopt;
  // An optimizer needs all gradients at the end.
  for (const ValueId gradient : *gradients) built.graph.MarkOutput(gradient);
  return PlanMemory(built.graph).arena_bytes + VariableBytes(built.graph);
}

}  // namespace

absl::StatusOr<v1::ModelDescription> DescribeModel(const v1::Model& model, int64_t batch_size) {
  v1::ModelDescription description;
  *description.mutable_model() = model;
  const v1::Model& filled = description.model();
  FillModelDefaults(description.mutable_model());
  TANDEM_RETURN_IF_ERROR(CheckModel(filled).status());
  BuiltNetwork one;
  TANDEM_RETURN_IF_ERROR(Build(filled, 1, /*training=*/false, one));
  AddLayers(one, description);
  description.set_batch_size(batch_size);
  BuiltNetwork batch;
  TANDEM_RETURN_IF_ERROR(Build(filled, batch_size, /*training=*/false, batch));
  batch.graph.MarkOutput(batch.network.output);
  description.set_inference_memory_bytes(PlanMemory(batch.graph).arena_bytes + VariableBytes(batch.graph));
  description.set_training_memory_bytes(TrainingBytes(filled, batch_size).value_or(0));
  return description;
}

}  // namespace tandem
