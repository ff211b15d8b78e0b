#include "engine/layers/merge.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/layers/activation.h"
#include "engine/layers/fields.h"
#include "engine/layers/sequence.h"

namespace tandem {
namespace {

// Returns the common shape of all inputs. The error has the field `field`.
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
  int most_inputs() const override { return kMaxInputs; }

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

class MultiplyLayerKind final : public LayerKind {
 public:
  absl::string_view field() const override { return "multiply"; }
  int least_inputs() const override { return 2; }
  int most_inputs() const override { return kMaxInputs; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Multiply* multiply = layer->mutable_multiply();
    if (multiply->activation() == v1::ACTIVATION_UNSPECIFIED) {
      multiply->set_activation(v1::ACTIVATION_IDENTITY);
    }
  }

  absl::Status Check(const v1::Layer& layer) const override {
    FieldViolations violations;
    CheckActivation("multiply.activation", layer.multiply().activation(), violations);
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> InferFrom(const v1::Layer& /*layer*/, absl::Span<const Shape> inputs) const override {
    return OneShape(field(), inputs);
  }

  absl::StatusOr<ValueId> BuildFrom(const v1::Layer& layer, absl::Span<const ValueId> inputs,
                                    LayerContext& context) const override {
    ValueId product = inputs[0];
    for (const ValueId input : inputs.subspan(1)) {
      TANDEM_ASSIGN_OR_RETURN(product, context.graph.Add(std::make_shared<MultiplyOp>(), {product, input}));
    }
    return AddActivation(layer.multiply().activation(), product, context.graph);
  }
};

class ConcatLayerKind final : public LayerKind {
 public:
  absl::string_view field() const override { return "concat"; }
  int least_inputs() const override { return 2; }
  int most_inputs() const override { return kMaxInputs; }

  void FillDefaults(v1::Layer* layer) const override {
    if (!layer->concat().has_axis()) layer->mutable_concat()->set_axis(0);
  }

  absl::Status Check(const v1::Layer& /*layer*/) const override { return absl::OkStatus(); }

  absl::StatusOr<Shape> InferFrom(const v1::Layer& layer, absl::Span<const Shape> inputs) const override {
    TANDEM_ASSIGN_OR_RETURN(const int axis, ResolveAxis("concat.axis", layer.concat().axis(), inputs[0]));
    std::vector<int64_t> extents(inputs[0].extents().begin(), inputs[0].extents().end());
    for (size_t i = 1; i < inputs.size(); ++i) {
      bool fits = inputs[i].rank() == inputs[0].rank();
      for (int k = 0; fits && k < inputs[0].rank(); ++k) fits = k == axis || inputs[i][k] == inputs[0][k];
      if (!fits) {
        return FieldError(
            field(), absl::StrCat("its inputs may differ in dimension ", axis, " alone; input ", i, " has ",
                                  inputs[i].ToString(), ", input 0 ", inputs[0].ToString()));
      }
      extents[axis] += inputs[i][axis];
    }
    return Shape(std::move(extents));
  }

  absl::StatusOr<ValueId> BuildFrom(const v1::Layer& layer, absl::Span<const ValueId> inputs,
                                    LayerContext& context) const override {
    const int axis = BatchedAxis(layer.concat().axis(), context.graph.value(inputs[0]).shape);
    return context.graph.Add(std::make_shared<ConcatOp>(axis), {inputs.begin(), inputs.end()});
  }
};

}  // namespace

const LayerKind& AddKind() { return TheOnly<AddLayerKind>(); }

const LayerKind& MultiplyKind() { return TheOnly<MultiplyLayerKind>(); }

const LayerKind& ConcatKind() { return TheOnly<ConcatLayerKind>(); }

}  // namespace tandem
