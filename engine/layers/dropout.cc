#include "engine/layers/dropout.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/graph/ops/dropout.h"
#include "engine/initializers/initializer.h"

namespace tandem {
namespace {

constexpr double kDefaultRate = 0.5;

class DropoutLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "dropout"; }

  void FillDefaults(v1::Layer* layer) const override {
    if (!layer->dropout().has_rate()) layer->mutable_dropout()->set_rate(kDefaultRate);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const double rate = layer.dropout().rate();
    if (rate >= 0 && rate < 1) return absl::OkStatus();
    return FieldError("dropout.rate", absl::StrCat("is ", rate, "; it must be from 0 to below 1"));
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override { return input; }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const double rate = layer.dropout().rate();
    if (!context.training || rate == 0) return input;
    const RandomSource& random = context.random;
    if (random.step == kNoValue) {
      return absl::InternalError("a training graph with dropout has no step to draw random numbers by");
    }
    // Each layer of a network draws from its own sequence.
    const uint64_t seed = SeedOf(random.seed, absl::StrCat(context.prefix, layer.name()));
    return context.graph.Add(std::make_shared<DropoutOp>(rate, seed, random.first_sample),
                             {input, random.step});
  }
};

}  // namespace

const LayerKind& DropoutKind() { return TheOnly<DropoutLayerKind>(); }

}  // namespace tandem
