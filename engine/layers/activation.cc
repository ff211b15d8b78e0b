#include "engine/layers/activation.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/elementwise.h"

namespace tandem {
namespace {

class ActivationLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "activation"; }

  absl::Status Check(const v1::Layer& layer) const override {
    FieldViolations violations;
    if (layer.activation().function() == v1::ACTIVATION_UNSPECIFIED) {
      violations.Add("activation.function", "is required; give identity or relu");
    } else {
      CheckActivation("activation.function", layer.activation().function(), violations);
    }
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override { return input; }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    return AddActivation(layer.activation().function(), input, context.graph);
  }
};

}  // namespace

void CheckActivation(absl::string_view field, v1::Activation activation, FieldViolations& violations) {
  if (v1::Activation_IsValid(activation) && activation <= v1::ACTIVATION_RELU) return;
  if (v1::Activation_IsValid(activation)) {
    violations.Add(field, absl::StrCat("is ", v1::Activation_Name(activation),
                                       ", which this version does not offer; give identity or relu"));
    return;
  }
  violations.Add(field, absl::StrCat("is ", static_cast<int>(activation), ", which is no activation"));
}

absl::StatusOr<ValueId> AddActivation(v1::Activation activation, ValueId input, Graph& graph) {
  switch (activation) {
    case v1::ACTIVATION_RELU:
      return graph.Add(std::make_shared<ReluOp>(), {input});
    default:
      return input;
  }
}

const LayerKind& ActivationKind() {
  static const ActivationLayerKind* const kind = new ActivationLayerKind;
  return *kind;
}

}  // namespace tandem
