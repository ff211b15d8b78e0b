#include "engine/layers/group_norm.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/group_norm.h"
#include "engine/layers/activation.h"
#include "engine/layers/fields.h"
#include "engine/layers/norm_fields.h"

namespace tandem {
namespace {

class GroupNormLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "group_norm"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::GroupNorm* norm = layer->mutable_group_norm();
    FillNorm(norm);
    if (norm->activation() == v1::ACTIVATION_UNSPECIFIED) norm->set_activation(v1::ACTIVATION_IDENTITY);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::GroupNorm& norm = layer.group_norm();
    FieldViolations violations;
    CheckExtent("group_norm.groups", norm.groups(), 1, violations);
    CheckAtLeastZero("group_norm.epsilon", norm.epsilon(), violations);
    CheckActivation("group_norm.activation", norm.activation(), violations);
    violations.AddAll("group_norm.weight_initializer", CheckInitializer(norm.weight_initializer()));
    violations.AddAll("group_norm.bias_initializer", CheckInitializer(norm.bias_initializer()));
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const int64_t groups = layer.group_norm().groups();
    if (input[0] % groups == 0) return input;
    return FieldError("group_norm.groups", absl::StrCat("is ", groups, "; it must divide the ", input[0],
                                                        " channels of the input ", input.ToString()));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::GroupNorm& norm = layer.group_norm();
    const Shape channels({context.graph.value(input).shape[1]});
    std::vector<ValueId> inputs =
        NormInputs(norm, /*has_bias=*/norm.affine(), layer.name(), channels, input, context);
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        context.graph.AddNode(std::make_shared<GroupNormOp>(norm.groups(), norm.epsilon()),
                              std::move(inputs)));
    return AddActivation(norm.activation(), outputs[0], context.graph);
  }
};

}  // namespace

const LayerKind& GroupNormKind() { return TheOnly<GroupNormLayerKind>(); }

}  // namespace tandem
