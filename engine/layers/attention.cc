#include "engine/layers/attention.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/matmul.h"
#include "engine/layers/dense.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

// The query, the key and the value.
constexpr int64_t kProjections = 3;
// The last projection, named as in PyTorch.
constexpr char kLastProjection[] = "out_proj";

class MultiHeadAttentionLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "multi_head_attention"; }
  std::vector<std::string> InnerNames(const v1::Layer& /*layer*/) const override { return {kLastProjection}; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::MultiHeadAttention* attention = layer->mutable_multi_head_attention();
    if (!attention->has_use_bias()) attention->set_use_bias(true);
    if (!attention->has_use_output_bias()) attention->set_use_output_bias(attention->use_bias());
    FillInitializer(XavierUniform(), attention->mutable_weight_initializer());
    FillInitializer(XavierUniform(), attention->mutable_output_weight_initializer());
    FillInitializer(Zeros(), attention->mutable_bias_initializer());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::MultiHeadAttention& attention = layer.multi_head_attention();
    FieldViolations violations;
    CheckExtent("multi_head_attention.heads", attention.heads(), 1, violations);
    violations.AddAll("multi_head_attention.weight_initializer",
                      CheckInitializer(attention.weight_initializer()));
    violations.AddAll("multi_head_attention.output_weight_initializer",
                      CheckInitializer(attention.output_weight_initializer()));
    violations.AddAll("multi_head_attention.bias_initializer",
                      CheckInitializer(attention.bias_initializer()));
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(CheckVectors("multi_head_attention", input));
    const int64_t heads = layer.multi_head_attention().heads();
    if (input[1] % heads == 0) return input;
    return FieldError("multi_head_attention.heads",
                      absl::StrCat("is ", heads, "; it must divide the ", input[1], " features of the input ",
                                   input.ToString()));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::MultiHeadAttention& attention = layer.multi_head_attention();
    Graph& graph = context.graph;
    const int64_t features = graph.value(input).shape[2];
    const double scale = 1 / std::sqrt(static_cast<double>(features / attention.heads()));
    const v1::Initializer& bias = attention.bias_initializer();
    TANDEM_ASSIGN_OR_RETURN(
        const ValueId projected,
        AddLinear(layer.name(), "in_proj_", input, kProjections * features, attention.weight_initializer(),
                  attention.use_bias() ? &bias : nullptr, context));
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> parts,
        graph.AddNode(std::make_shared<SplitHeadsOp>(kProjections, attention.heads()), {projected}));
    TANDEM_ASSIGN_OR_RETURN(const ValueId scores,
                            graph.Add(std::make_shared<MatmulOp>(/*transpose_a=*/false, /*transpose_b=*/true),
                                      {parts[0], parts[1]}));
    TANDEM_ASSIGN_OR_RETURN(
        const ValueId weights,
        graph.Add(std::make_shared<AttentionSoftmaxOp>(scale, attention.causal()), {scores}));
    TANDEM_ASSIGN_OR_RETURN(const ValueId heads,
                            graph.Add(std::make_shared<MatmulOp>(), {weights, parts[2]}));
    TANDEM_ASSIGN_OR_RETURN(const ValueId joined, graph.Add(std::make_shared<MergeHeadsOp>(), {heads}));
    return AddLinear(layer.name(), absl::StrCat(kLastProjection, "."), joined, features,
                     attention.output_weight_initializer(), attention.use_output_bias() ? &bias : nullptr,
                     context);
  }
};

}  // namespace

const LayerKind& MultiHeadAttentionKind() { return TheOnly<MultiHeadAttentionLayerKind>(); }

}  // namespace tandem
