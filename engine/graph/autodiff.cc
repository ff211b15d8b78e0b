#include "engine/graph/autodiff.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"

namespace tandem {
namespace {

// By ValueId: whether the value follows from one of `targets`.
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

// The gradient of each value as far as its readers are known: a sum whose terms are added when it is asked
// for.
class Gradients {
 public:
  Gradients(Graph& graph, size_t values) : graph_(graph), terms_(values) {}

  void Contribute(ValueId value, ValueId grad) { terms_[value].push_back(grad); }

  // kNoValue where nothing was contributed.
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

absl::Status CheckArguments(const Graph& graph, ValueId loss, absl::Span<const ValueId> targets) {
  const Value& value = graph.value(loss);
  if (value.shape.rank() != 0 || !IsFloatingPoint(value.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the loss must be a floating-point scalar, not ",
                                                   TensorType{value.dtype, value.shape}.ToString()));
  }
  for (const ValueId target : targets) {
    if (!IsFloatingPoint(graph.value(target).dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", graph.value(target).name, "\" is not of a floating-point type"));
    }
  }
  // The backward pass would read what the forward pass did not.
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

}  // namespace

absl::StatusOr<std::vector<ValueId>> AppendGradients(Graph& graph, ValueId loss,
                                                     absl::Span<const ValueId> targets) {
  TANDEM_RETURN_IF_ERROR(CheckArguments(graph, loss, targets));
  const std::vector<bool> leads = LeadsFrom(graph, targets);
  Gradients gradients(graph, graph.values().size());
  gradients.Contribute(loss, graph.AddConstant(1, graph.value(loss).dtype, Shape()));

  const NodeId forward_nodes = static_cast<NodeId>(graph.nodes().size());
  for (NodeId id = forward_nodes - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    std::vector<bool> wanted;
    for (const ValueId input : node.inputs) wanted.push_back(leads[input]);
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
    std::vector<ValueId> grad_outputs;
    for (const ValueId output : node.outputs) {
      TANDEM_ASSIGN_OR_RETURN(grad_outputs.emplace_back(), gradients.Sum(output));
    }
    const bool matters =
        std::any_of(grad_outputs.begin(), grad_outputs.end(), [](ValueId grad) { return grad != kNoValue; });
    if (!matters) continue;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> grads,
                            node.op->Gradient(graph, node, grad_outputs, wanted));
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] != kNoValue) gradients.Contribute(node.inputs[i], grads[i]);
    }
  }

  std::vector<ValueId> result;
  for (const ValueId target : targets) {
    TANDEM_ASSIGN_OR_RETURN(ValueId grad, gradients.Sum(target));
    if (grad == kNoValue) grad = graph.AddConstant(0, graph.value(target).dtype, graph.value(target).shape);
    result.push_back(grad);
  }
  return result;
}

}  // namespace tandem
