#include "engine/layers/dense.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/reshape.h"
#include "engine/layers/activation.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

// Flattens [batch, ...] to [batch, features].
absl::StatusOr<ValueId> Flattened(ValueId input, Graph& graph) {
  const Shape& shape = graph.value(input).shape;
  if (shape.rank() == 2) return input;
  const Shape flat({shape[0], shape.elements() / shape[0]});
  return graph.Add(std::make_shared<ReshapeOp>(flat), {input});
}

class DenseLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "dense"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Dense* dense = layer->mutable_dense();
    if (!dense->has_use_bias()) dense->set_use_bias(true);
    if (dense->activation() == v1::ACTIVATION_UNSPECIFIED) dense->set_activation(v1::ACTIVATION_IDENTITY);
    FillInitializer(XavierUniform(), dense->mutable_weight_initializer());
    FillInitializer(Zeros(), dense->mutable_bias_initializer());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Dense& dense = layer.dense();
    FieldViolations violations;
    CheckExtent("dense.units", dense.units(), 1, violations);
    CheckActivation("dense.activation", dense.activation(), violations);
    violations.AddAll("dense.weight_initializer", CheckInitializer(dense.weight_initializer()));
    violations.AddAll("dense.bias_initializer", CheckInitializer(dense.bias_initializer()));
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    if (!layer.dense().per_position()) return Shape({layer.dense().units()});
    if (input.rank() < 2) {
      return FieldError("dense.per_position", absl::StrCat("takes sequences [length, features], not ",
                                                           input.ToString(), "; leave it out"));
    }
    return input.WithExtent(-1, layer.dense().units());
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::Dense& dense = layer.dense();
    if (!dense.per_position()) {
      TANDEM_ASSIGN_OR_RETURN(input, Flattened(input, context.graph));
    }
    TANDEM_ASSIGN_OR_RETURN(
        const ValueId output,
        AddLinear(layer.name(), /*prefix=*/"", input, dense.units(), dense.weight_initializer(),
                  dense.use_bias() ? &dense.bias_initializer() : nullptr, context));
    return AddActivation(dense.activation(), output, context.graph);
  }
};

class FlattenLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "flatten"; }
  absl::Status Check(const v1::Layer& /*layer*/) const override { return absl::OkStatus(); }
  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override {
    return Shape({input.elements()});
  }
  absl::StatusOr<ValueId> Build(const v1::Layer& /*layer*/, ValueId input,
                                LayerContext& context) const override {
    return Flattened(input, context.graph);
  }
};

}  // namespace

absl::StatusOr<ValueId> AddLinear(absl::string_view layer, absl::string_view prefix, ValueId input,
                                  int64_t units, const v1::Initializer& weight_initializer,
                                  const v1::Initializer* bias_initializer, LayerContext& context) {
  const int64_t features = context.graph.value(input).shape[-1];
  const Fans fans{.in = static_cast<double>(features), .out = static_cast<double>(units)};
  std::vector<ValueId> inputs = {input, AddParameter(context, layer, absl::StrCat(prefix, "weight"),
                                                     Shape({units, features}), weight_initializer, fans)};
  if (bias_initializer != nullptr) {
    inputs.push_back(
        AddParameter(context, layer, absl::StrCat(prefix, "bias"), Shape({units}), *bias_initializer, fans));
  }
  return context.graph.Add(std::make_shared<LinearOp>(), std::move(inputs));
}

const LayerKind& DenseKind() { return TheOnly<DenseLayerKind>(); }

const LayerKind& FlattenKind() { return TheOnly<FlattenLayerKind>(); }

}  // namespace tandem
