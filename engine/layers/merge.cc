#include "engine/layers/merge.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/layers/activation.h"

namespace tandem {
namespace {

// The one shape of all inputs; the error is of `field`.
absl::StatusOr<Shape> OneShape(absl::string_view field, absl::Span<const Shape> inputs) {
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == inputs[0]) continue;
    return FieldError(field, absl::StrCat("its inputs must have one shape; input ", i, " has ",
                                          inputs[i].ToString(), ", not ", inputs[0].ToString()));
  }
  return inputs[0];
}

class AddLayerKind final : public LayerKind {
 public:
  absl::string_view field() const override { return "add"; }
  int least_inputs() const override { return 2; }
  int most_inputs() const override { return std::numeric_limits<int>::max(); }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Add* add = layer->mutable_add();
    if (add->activation() == v1::ACTIVATION_UNSPECIFIED) add->set_activation(v1::ACTIVATION_IDENTITY);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    FieldViolations violations;
    CheckActivation("add.activation", layer.add().activation(), violations);
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> InferFrom(const v1::Layer& /*layer*/, absl::Span<const Shape> inputs) const override {
    return OneShape(field(), inputs);
  }

  absl::StatusOr<ValueId> BuildFrom(const v1::Layer& layer, absl::Span<const ValueId> inputs,
                                    LayerContext& context) const override {
    ValueId sum = inputs[0];
    for (const ValueId input : inputs.subspan(1)) {
      TANDEM_ASSIGN_OR_RETURN(sum, context.graph.Add(std::make_shared<AddOp>(), {sum, input}));
    }
    return AddActivation(layer.add().activation(), sum, context.graph);
  }
};

}  // namespace

const LayerKind& AddKind() {
  static const AddLayerKind* const kind = new AddLayerKind;
  return *kind;
}

}  // namespace tandem
