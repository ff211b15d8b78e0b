#include "engine/layers/upsample.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/upsample.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

// Returns the rule for images of `input`. Its size may still be too large.
UpsampleRule RuleOf(const v1::Upsample& upsample, Size2d input) {
  UpsampleRule rule;
  rule.mode =
      upsample.mode() == v1::UPSAMPLE_MODE_BILINEAR ? UpsampleMode::kBilinear : UpsampleMode::kNearest;
  rule.align_corners = upsample.align_corners();
  if (upsample.scale().empty()) {
    rule.size = PairOf(upsample.size());
    return rule;
  }
  rule.scale_h = upsample.scale()[0];
  rule.scale_w = upsample.scale()[upsample.scale_size() - 1];
  const auto scaled = [](int64_t extent, double scale) {
    const double result = std::floor(static_cast<double>(extent) * scale);
    return static_cast<int64_t>(std::fmin(result, static_cast<double>(kMaxExtent) + 1));
  };
  rule.size = {scaled(input.h, rule.scale_h), scaled(input.w, rule.scale_w)};
  return rule;
}

class UpsampleLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "upsample"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Upsample* upsample = layer->mutable_upsample();
    if (upsample->mode() == v1::UPSAMPLE_MODE_UNSPECIFIED) upsample->set_mode(v1::UPSAMPLE_MODE_NEAREST);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Upsample& upsample = layer.upsample();
    FieldViolations violations;
    if (upsample.scale().empty() == upsample.size().empty()) {
      violations.Add("upsample.scale", upsample.scale().empty()
                                           ? "is missing, and so is size; give one of them"
                                           : "is given, and so is size; leave one out");
    } else if (upsample.scale().empty()) {
      CheckPair("upsample.size", upsample.size(), 1, violations);
    } else if (upsample.scale_size() > 2) {
      violations.Add("upsample.scale",
                     absl::StrCat("has ", upsample.scale_size(),
                                  " numbers; give a height's and a width's, or one for both"));
    }
    for (int i = 0; i < upsample.scale_size(); ++i) {
      CheckAboveZero(absl::StrCat("upsample.scale[", i, "]"), upsample.scale(i), violations);
    }
    if (!v1::UpsampleMode_IsValid(upsample.mode())) {
      violations.Add("upsample.mode",
                     absl::StrCat("is ", static_cast<int>(upsample.mode()), ", which is no mode"));
    }
    if (upsample.align_corners() && upsample.mode() != v1::UPSAMPLE_MODE_BILINEAR) {
      violations.Add("upsample.align_corners", "is given, but only the bilinear mode has it; leave it out");
    }
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(CheckImage(field(), input));
    const Size2d size = RuleOf(layer.upsample(), {input[1], input[2]}).size;
    if (size.h >= 1 && size.w >= 1 && size.h <= kMaxExtent && size.w <= kMaxExtent) {
      return Shape({input[0], size.h, size.w});
    }
    return FieldError("upsample.scale",
                      absl::StrCat("makes ", input.ToString(), " an image of ", size.ToString(),
                                   "; each must be from 1 to ", kMaxExtent));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const Shape& shape = context.graph.value(input).shape;
    return context.graph.Add(std::make_shared<UpsampleOp>(RuleOf(layer.upsample(), {shape[2], shape[3]})),
                             {input});
  }
};

}  // namespace

const LayerKind& UpsampleKind() { return TheOnly<UpsampleLayerKind>(); }

}  // namespace tandem
