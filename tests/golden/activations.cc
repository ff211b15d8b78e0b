#include "tests/golden/activations.h"

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/softmax.h"

namespace tandem {
namespace {

absl::StatusOr<ValueId> AddRule(Graph& graph, ValueId input, const ActivationRule& rule) {
  return graph.Add(std::make_shared<ActivationOp>(rule), {input});
}

absl::StatusOr<ValueId> AddSoftmax(Graph& graph, Attributes& attributes, ValueId input, bool log) {
  const int rank = graph.value(input).shape.rank();
  if (!attributes.Has("dim")) return absl::InvalidArgumentError("dim is missing");
  const int64_t dim = attributes.Whole("dim", 0);
  return graph.Add(std::make_shared<SoftmaxOp>(static_cast<int>(dim < 0 ? dim + rank : dim), log), {input});
}

}  // namespace

absl::StatusOr<ValueId> AddGoldenActivation(Graph& graph, const std::string& type, Attributes& attributes,
                                            ValueId input) {
  if (type == "softmax" || type == "log_softmax") {
    return AddSoftmax(graph, attributes, input, type == "log_softmax");
  }
  static const std::map<std::string, ActivationFunction> kPlain = {
      {"hard_swish", ActivationFunction::kHardSwish},
      {"hardswish", ActivationFunction::kHardSwish},
      {"selu", ActivationFunction::kSelu},
      {"sigmoid", ActivationFunction::kSigmoid},
      {"silu", ActivationFunction::kSilu},
      {"swish", ActivationFunction::kSilu},
      {"tanh", ActivationFunction::kTanh}};
  const auto plain = kPlain.find(type);
  const bool known = plain != kPlain.end() || type == "relu" || type == "leaky_relu" || type == "elu" ||
                     type == "gelu" || type == "softplus" || type == "identity";
  if (!known) return kNoValue;
  attributes.Ignore("inplace");
  if (type == "identity") return input;
  if (type == "relu") return graph.Add(std::make_shared<ReluOp>(), {input});
  if (type == "leaky_relu") {
    return AddRule(graph, input, {ActivationFunction::kLeakyRelu, attributes.Number("negative_slope", 0.01)});
  }
  if (type == "elu") return AddRule(graph, input, {ActivationFunction::kElu, attributes.Number("alpha", 1)});
  if (type == "softplus") {
    return AddRule(
        graph, input,
        {ActivationFunction::kSoftplus, attributes.Number("beta", 1), attributes.Number("threshold", 20)});
  }
  if (type == "gelu") {
    const std::string form = attributes.Text("approximate", "none");
    if (form != "none" && form != "tanh") {
      return absl::UnimplementedError(absl::StrCat("gelu by ", form, " is not offered yet"));
    }
    return AddRule(graph, input,
                   {form == "tanh" ? ActivationFunction::kGeluTanh : ActivationFunction::kGelu});
  }
  return AddRule(graph, input, {plain->second});
}

}  // namespace tandem
