#include "engine/layers/blocks.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/layers/activation.h"

namespace tandem {
namespace {

constexpr char kResidualPath[] = "residual.layers";
constexpr char kShortcutPath[] = "residual.shortcut";
constexpr char kShortcutSuffix[] = "shortcut.";
constexpr char kRepeatPath[] = "repeat.layers";

std::string RepeatSuffix(int64_t time) { return absl::StrCat(time + 1, "."); }

// Returns the output shape of a sequence for this input.
absl::StatusOr<Shape> InferSequence(const Layers& layers, absl::string_view path, const Shape& input) {
  if (layers.empty()) return input;
  FieldViolations violations;
  std::vector<absl::optional<Shape>> shapes = CheckSequence(layers, path, input, violations);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return *std::move(shapes.back());
}

absl::StatusOr<ValueId> BuildWithin(const v1::Layer& block, const Layers& layers, absl::string_view path,
                                    absl::string_view suffix, ValueId input, LayerContext& context) {
  LayerContext within = context;
  within.prefix = absl::StrCat(context.prefix, block.name(), ".", suffix);
  return BuildSequence(layers, path, input, within);
}

void CheckNotEmpty(const Layers& layers, absl::string_view path, FieldViolations& violations) {
  if (layers.empty()) violations.Add(path, "is empty; give at least one layer");
}

class ResidualLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "residual"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Residual* residual = layer->mutable_residual();
    FillSequence(residual->mutable_layers());
    FillSequence(residual->mutable_shortcut());
    if (residual->activation() == v1::ACTIVATION_UNSPECIFIED) {
      residual->set_activation(v1::ACTIVATION_IDENTITY);
    }
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Residual& residual = layer.residual();
    FieldViolations violations;
    CheckNotEmpty(residual.layers(), kResidualPath, violations);
    CheckSequence(residual.layers(), kResidualPath, absl::nullopt, violations);
    CheckSequence(residual.shortcut(), kShortcutPath, absl::nullopt, violations);
    CheckActivation("residual.activation", residual.activation(), violations);
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const v1::Residual& residual = layer.residual();
    TANDEM_ASSIGN_OR_RETURN(Shape main, InferSequence(residual.layers(), kResidualPath, input));
    TANDEM_ASSIGN_OR_RETURN(const Shape shortcut, InferSequence(residual.shortcut(), kShortcutPath, input));
    if (main == shortcut) return main;
    return FieldError(
        residual.shortcut().empty() ? kResidualPath : kShortcutPath,
        absl::StrCat("the layers give ", main.ToString(), ", but the shortcut ", shortcut.ToString(),
                     residual.shortcut().empty() ? ", the input itself; give a shortcut that changes "
                                                   "it to the layers' shape, such as a 1x1 conv2d"
                                                 : "; they are added and must have one shape"));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::Residual& residual = layer.residual();
    TANDEM_ASSIGN_OR_RETURN(const ValueId main,
                            BuildWithin(layer, residual.layers(), kResidualPath, "", input, context));
    TANDEM_ASSIGN_OR_RETURN(const ValueId shortcut, BuildWithin(layer, residual.shortcut(), kShortcutPath,
                                                                kShortcutSuffix, input, context));
    TANDEM_ASSIGN_OR_RETURN(const ValueId sum,
                            context.graph.Add(std::make_shared<AddOp>(), {main, shortcut}));
    return AddActivation(residual.activation(), sum, context.graph);
  }
};

class RepeatLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "repeat"; }

  void FillDefaults(v1::Layer* layer) const override {
    FillSequence(layer->mutable_repeat()->mutable_layers());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Repeat& repeat = layer.repeat();
    FieldViolations violations;
    if (repeat.count() < 1 || repeat.count() > kMaxLayers) {
      violations.Add("repeat.count",
                     absl::StrCat("is ", repeat.count(), "; it must be from 1 to ", kMaxLayers));
    }
    CheckNotEmpty(repeat.layers(), kRepeatPath, violations);
    CheckSequence(repeat.layers(), kRepeatPath, absl::nullopt, violations);
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    Shape shape = input;
    for (int64_t time = 0; time < layer.repeat().count(); ++time) {
      absl::StatusOr<Shape> next = InferSequence(layer.repeat().layers(), kRepeatPath, shape);
      if (next.ok()) {
        // Further repetitions do not change the shape.
        if (*next == shape) return shape;
        shape = *std::move(next);
        continue;
      }
      FieldViolations violations;
      for (const FieldViolation& violation : GetFieldViolations(next.status())) {
        violations.Add(violation.field,
                       absl::StrCat("at repetition ", time + 1, ": ", violation.description));
      }
      return violations.ToStatus();
    }
    return shape;
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    for (int64_t time = 0; time < layer.repeat().count(); ++time) {
      TANDEM_ASSIGN_OR_RETURN(input, BuildWithin(layer, layer.repeat().layers(), kRepeatPath,
                                                 RepeatSuffix(time), input, context));
    }
    return input;
  }
};

}  // namespace

const LayerKind& ResidualKind() { return TheOnly<ResidualLayerKind>(); }

const LayerKind& RepeatKind() { return TheOnly<RepeatLayerKind>(); }

void ForEachBlock(const v1::Layer& layer,
                  const std::function<void(const Layers& layers, const std::string& path,
                                           const std::string& suffix)>& visit) {
  if (layer.has_residual()) {
    visit(layer.residual().layers(), kResidualPath, "");
    visit(layer.residual().shortcut(), kShortcutPath, kShortcutSuffix);
  }
  for (int64_t time = 0; time < layer.repeat().count(); ++time) {
    visit(layer.repeat().layers(), kRepeatPath, RepeatSuffix(time));
  }
}

}  // namespace tandem
