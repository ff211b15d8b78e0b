#include "engine/layers/softmax.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/softmax.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

// Softmax and its logarithm. Both messages have the same field.
class SoftmaxLayerKind final : public OneInputLayerKind {
 public:
  explicit SoftmaxLayerKind(bool log) : log_(log) {}
  absl::string_view field() const override { return log_ ? "log_softmax" : "softmax"; }

  void FillDefaults(v1::Layer* layer) const override {
    if (log_ && !layer->log_softmax().has_axis()) layer->mutable_log_softmax()->set_axis(0);
    if (!log_ && !layer->softmax().has_axis()) layer->mutable_softmax()->set_axis(0);
  }

  absl::Status Check(const v1::Layer& /*layer*/) const override { return absl::OkStatus(); }

 private:
  int64_t AxisOf(const v1::Layer& layer) const {
    return log_ ? layer.log_softmax().axis() : layer.softmax().axis();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(ResolveAxis(absl::StrCat(field(), ".axis"), AxisOf(layer), input).status());
    return input;
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const int axis = BatchedAxis(AxisOf(layer), context.graph.value(input).shape);
    return context.graph.Add(std::make_shared<SoftmaxOp>(axis, log_), {input});
  }

  const bool log_;
};

}  // namespace

const LayerKind& SoftmaxKind() {
  static const SoftmaxLayerKind* const kind = new SoftmaxLayerKind(false);
  return *kind;
}

const LayerKind& LogSoftmaxKind() {
  static const SoftmaxLayerKind* const kind = new SoftmaxLayerKind(true);
  return *kind;
}

}  // namespace tandem
