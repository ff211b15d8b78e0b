#include "engine/layers/activation.h"

#include <cmath>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/elementwise.h"

namespace tandem {
namespace {

constexpr double kDefaultSlope = 0.01;
constexpr double kDefaultAlpha = 1;
constexpr double kDefaultBeta = 1;
constexpr double kDefaultThreshold = 20;

class ActivationLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "activation"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::ActivationLayer* activation = layer->mutable_activation();
    switch (activation->function()) {
      case v1::ACTIVATION_LEAKY_RELU:
        if (!activation->has_negative_slope()) activation->set_negative_slope(kDefaultSlope);
        break;
      case v1::ACTIVATION_ELU:
        if (!activation->has_alpha()) activation->set_alpha(kDefaultAlpha);
        break;
      case v1::ACTIVATION_SOFTPLUS:
        if (!activation->has_beta()) activation->set_beta(kDefaultBeta);
        if (!activation->has_threshold()) activation->set_threshold(kDefaultThreshold);
        break;
      default:
        break;
    }
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::ActivationLayer& activation = layer.activation();
    FieldViolations violations;
    if (activation.function() == v1::ACTIVATION_UNSPECIFIED) {
      violations.Add("activation.function", "is required; give one, such as relu");
      return violations.ToStatus();
    }
    CheckActivation("activation.function", activation.function(), violations);
    const auto check = [&](absl::string_view name, bool given, double value, v1::Activation owner) {
      const std::string field = absl::StrCat("activation.", name);
      if (given && activation.function() != owner) {
        violations.Add(
            field, absl::StrCat("is given, but only ", v1::Activation_Name(owner), " has it; leave it out"));
      } else if (given && !std::isfinite(value)) {
        violations.Add(field, absl::StrCat("is ", value, "; it must be finite"));
      }
    };
    check("negative_slope", activation.has_negative_slope(), activation.negative_slope(),
          v1::ACTIVATION_LEAKY_RELU);
    check("alpha", activation.has_alpha(), activation.alpha(), v1::ACTIVATION_ELU);
    check("beta", activation.has_beta(), activation.beta(), v1::ACTIVATION_SOFTPLUS);
    check("threshold", activation.has_threshold(), activation.threshold(), v1::ACTIVATION_SOFTPLUS);
    if (violations.empty() && activation.has_beta() && activation.beta() <= 0) {
      violations.Add("activation.beta", absl::StrCat("is ", activation.beta(), "; it must be above 0"));
    }
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override { return input; }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::ActivationLayer& activation = layer.activation();
    ActivationRule rule;
    switch (activation.function()) {
      case v1::ACTIVATION_LEAKY_RELU:
        rule = {ActivationFunction::kLeakyRelu, activation.negative_slope()};
        break;
      case v1::ACTIVATION_ELU:
        rule = {ActivationFunction::kElu, activation.alpha()};
        break;
      case v1::ACTIVATION_SOFTPLUS:
        rule = {ActivationFunction::kSoftplus, activation.beta(), activation.threshold()};
        break;
      default:
        return AddActivation(activation.function(), input, context.graph);
    }
    return context.graph.Add(std::make_shared<ActivationOp>(rule), {input});
  }
};

// Returns the rule of an activation that is an ActivationOp, with its default constants. INTERNAL if an
// activation has no rule.
absl::StatusOr<ActivationRule> RuleOf(v1::Activation activation) {
  switch (activation) {
    case v1::ACTIVATION_LEAKY_RELU:
      return ActivationRule{ActivationFunction::kLeakyRelu, kDefaultSlope};
    case v1::ACTIVATION_ELU:
      return ActivationRule{ActivationFunction::kElu, kDefaultAlpha};
    case v1::ACTIVATION_GELU:
      return ActivationRule{ActivationFunction::kGelu};
    case v1::ACTIVATION_GELU_TANH:
      return ActivationRule{ActivationFunction::kGeluTanh};
    case v1::ACTIVATION_SIGMOID:
      return ActivationRule{ActivationFunction::kSigmoid};
    case v1::ACTIVATION_SILU:
      return ActivationRule{ActivationFunction::kSilu};
    case v1::ACTIVATION_SOFTPLUS:
      return ActivationRule{ActivationFunction::kSoftplus, kDefaultBeta, kDefaultThreshold};
    case v1::ACTIVATION_HARD_SWISH:
      return ActivationRule{ActivationFunction::kHardSwish};
    case v1::ACTIVATION_SELU:
      return ActivationRule{ActivationFunction::kSelu};
    case v1::ACTIVATION_TANH:
      return ActivationRule{ActivationFunction::kTanh};
    default:
      return absl::InternalError(absl::StrCat("cannot build ", v1::Activation_Name(activation),
                                              ": engine/layers/activation.cc has no rule for it; add one"));
  }
}

}  // namespace

void CheckActivation(absl::string_view field, v1::Activation activation, FieldViolations& violations) {
  if (v1::Activation_IsValid(activation)) return;
  violations.Add(field, absl::StrCat("is ", static_cast<int>(activation), ", which is no activation"));
}

absl::StatusOr<ValueId> AddActivation(v1::Activation activation, ValueId input, Graph& graph) {
  switch (activation) {
    case v1::ACTIVATION_UNSPECIFIED:
    case v1::ACTIVATION_IDENTITY:
      return input;
    case v1::ACTIVATION_RELU:
      return graph.Add(std::make_shared<ReluOp>(), {input});
    default: {
      TANDEM_ASSIGN_OR_RETURN(const ActivationRule rule, RuleOf(activation));
      return graph.Add(std::make_shared<ActivationOp>(rule), {input});
    }
  }
}

const LayerKind& ActivationKind() { return TheOnly<ActivationLayerKind>(); }

}  // namespace tandem
