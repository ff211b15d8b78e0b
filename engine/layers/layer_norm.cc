#include "engine/layers/layer_norm.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/layer_norm.h"
#include "engine/layers/fields.h"
#include "engine/layers/norm_fields.h"

namespace tandem {
namespace {

class LayerNormLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "layer_norm"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::LayerNorm* norm = layer->mutable_layer_norm();
    FillNorm(norm);
    if (norm->dimensions() == 0) norm->set_dimensions(1);
    if (!norm->has_use_bias()) norm->set_use_bias(norm->affine());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::LayerNorm& norm = layer.layer_norm();
    FieldViolations violations;
    CheckAtLeastZero("layer_norm.epsilon", norm.epsilon(), violations);
    CheckExtent("layer_norm.dimensions", norm.dimensions(), 1, violations);
    if (norm.use_bias() && !norm.affine()) {
      violations.Add("layer_norm.use_bias",
                     "is true, but affine is false; a bias needs the weight beside it");
    }
    violations.AddAll("layer_norm.weight_initializer", CheckInitializer(norm.weight_initializer()));
    violations.AddAll("layer_norm.bias_initializer", CheckInitializer(norm.bias_initializer()));
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const int dimensions = layer.layer_norm().dimensions();
    if (dimensions <= input.rank()) return input;
    return FieldError("layer_norm.dimensions", absl::StrCat("is ", dimensions, ", but the input ",
                                                            input.ToString(), " has ", input.rank()));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::LayerNorm& norm = layer.layer_norm();
    const Shape normalized = context.graph.value(input).shape.From(-static_cast<int>(norm.dimensions()));
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        context.graph.AddNode(std::make_shared<LayerNormOp>(norm.dimensions(), norm.epsilon()),
                              NormInputs(norm, norm.use_bias(), layer.name(), normalized, input, context)));
    return outputs[0];
  }
};

}  // namespace

const LayerKind& LayerNormKind() { return TheOnly<LayerNormLayerKind>(); }

}  // namespace tandem
