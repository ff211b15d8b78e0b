#include "engine/graph/autodiff.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"

namespace tandem {
namespace {

// Returns, by ValueId, whether the value depends on any of `targets`.
std::vector<bool> LeadsFrom(const Graph& graph, absl::Span<const ValueId> targets) {
  std::vector<bool> leads(graph.values().size(), false);
  for (const ValueId target : targets) leads[target] = true;
  for (const Node& node : graph.nodes()) {
    const bool reads =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&leads](ValueId input) { return leads[input]; });
    if (!reads) continue;
    for (const ValueId output : node.outputs) leads[output] = true;
  }
  return leads;
}

// Gathers the gradients of each value. Sum adds the terms only when a reader needs the sum.
class Gradients {
 public:
  Gradients(Graph& graph, size_t values) : graph_(graph), terms_(values) {}

  void Contribute(ValueId value, ValueId grad) { terms_[value].push_back(grad); }

  // Returns the sum, or kNoValue if the value has no terms.
  absl::StatusOr<ValueId> Sum(ValueId value) {
    std::vector<ValueId>& terms = terms_[value];
    if (terms.empty()) return kNoValue;
    ValueId sum = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      TANDEM_ASSIGN_OR_RETURN(sum, graph_.Add(std::make_shared<AddOp>(), {sum, terms[i]}));
    }
    terms = {sum};
    return sum;
  }

 private:
  Graph& graph_;
  std::vector<std::vector<ValueId>> terms_;
};

absl::Status CheckArguments(const Graph& graph, ValueId loss, absl::Span<const ValueId> targets,
                            ValueId scale) {
  const Value& value = graph.value(loss);
  if (value.shape.rank() != 0 || !IsFloatingPoint(value.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the loss must be a floating-point scalar, not ",
                                                   TensorType{value.dtype, value.shape}.ToString()));
  }
  if (scale != kNoValue &&
      (graph.value(scale).dtype != value.dtype || graph.value(scale).shape != value.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss is scaled by ", TensorType{graph.value(scale).dtype, graph.value(scale).shape}.ToString(),
        ", which is not of its type"));
  }
  for (const ValueId target : targets) {
    if (!IsFloatingPoint(graph.value(target).dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", graph.value(target).name, "\" is not of a floating-point type"));
    }
  }
  // The forward pass read a value before this node changed it, and the backward pass would read it after.
  for (const Node& node : graph.nodes()) {
    for (const int i : node.op->MutatedInputs()) {
      if (std::find(targets.begin(), targets.end(), node.inputs[i]) == targets.end()) continue;
      return absl::FailedPreconditionError(absl::StrCat(node.op->kind(), " already changes \"",
                                                        graph.value(node.inputs[i]).name,
                                                        "\": take gradients before updates"));
    }
  }
  return absl::OkStatus();
}

// Appends the gradient of `node` if the loss depends on its outputs.
absl::Status AppendGradientsOf(Graph& graph, const Node& node, const std::vector<bool>& leads,
                               Gradients& gradients) {
  std::vector<bool> wanted;
  for (const ValueId input : node.inputs) wanted.push_back(leads[input]);
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return absl::OkStatus();
  std::vector<ValueId> grad_outputs;
  for (const ValueId output : node.outputs) {
    TANDEM_ASSIGN_OR_RETURN(grad_outputs.emplace_back(), gradients.Sum(output));
  }
  const bool matters =
      std::any_of(grad_outputs.begin(), grad_outputs.end(), [](ValueId grad) { return grad != kNoValue; });
  if (!matters) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> grads,
                          node.op->Gradient(graph, node, grad_outputs, wanted));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i] != kNoValue) gradients.Contribute(node.inputs[i], grads[i]);
  }
  return absl::OkStatus();
}

// Maps each node to the targets that it reads first, or kNoNode to targets that no node reads. The backward
// pass reaches a target's first reader last, so the target's gradient is then complete.
std::map<NodeId, std::vector<size_t>> TargetsByFirstReader(const Graph& graph,
                                                           absl::Span<const ValueId> targets) {
  std::vector<NodeId> first(graph.values().size(), kNoNode);
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      if (first[input] == kNoNode) first[input] = node.id;
    }
  }
  std::map<NodeId, std::vector<size_t>> result;
  for (size_t i = 0; i < targets.size(); ++i) result[first[targets[i]]].push_back(i);
  return result;
}

}  // namespace

absl::StatusOr<std::vector<ValueId>> AppendGradients(Graph& graph, ValueId loss,
                                                     absl::Span<const ValueId> targets,
                                                     const GradientReady& on_ready, ValueId scale) {
  TANDEM_RETURN_IF_ERROR(CheckArguments(graph, loss, targets, scale));
  const std::vector<bool> leads = LeadsFrom(graph, targets);
  Gradients gradients(graph, graph.values().size());
  gradients.Contribute(loss,
                       scale == kNoValue ? graph.AddConstant(1, graph.value(loss).dtype, Shape()) : scale);

  const std::map<NodeId, std::vector<size_t>> ready = TargetsByFirstReader(graph, targets);
  std::vector<ValueId> result(targets.size(), kNoValue);
  const auto finish = [&](NodeId first_reader) -> absl::Status {
    const auto found = ready.find(first_reader);
    if (found == ready.end()) return absl::OkStatus();
    for (const size_t i : found->second) {
      const ValueId target = targets[i];
      TANDEM_ASSIGN_OR_RETURN(result[i], gradients.Sum(target));
      if (result[i] == kNoValue) {
        result[i] = graph.AddConstant(0, graph.value(target).dtype, graph.value(target).shape);
      }
      if (on_ready != nullptr) TANDEM_RETURN_IF_ERROR(on_ready(i, result[i]));
    }
    return absl::OkStatus();
  };
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= 0; --id) {
    TANDEM_RETURN_IF_ERROR(AppendGradientsOf(graph, graph.node(id), leads, gradients));
    TANDEM_RETURN_IF_ERROR(finish(id));
  }
  TANDEM_RETURN_IF_ERROR(finish(kNoNode));
  return result;
}

}  // namespace tandem
