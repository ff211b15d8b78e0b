#include "engine/layers/pooling.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/pooling.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

// The largest number of elements in a window of the op.
constexpr int64_t kMaxWindow = 255;

// Both messages have size, stride and padding.
template <typename Pool>
PoolGeometry GeometryOf(const Pool& pool) {
  return {.size = PairOf(pool.size()),
          .stride = PairOf(pool.stride()),
          .padding = PairOf(pool.padding()),
          .ceil_mode = pool.ceil_mode()};
}

template <typename Pool>
void FillWindow(Pool* pool) {
  if (pool->stride().empty()) *pool->mutable_stride() = pool->size();
  FillPair(0, pool->mutable_padding());
}

template <typename Pool>
void CheckWindow(absl::string_view kind, const Pool& pool, FieldViolations& violations) {
  FieldViolations found;
  CheckPair("size", pool.size(), 1, found);
  // The default stride is the size. A wrong size is reported once.
  if (found.empty()) CheckPair("stride", pool.stride(), 1, found);
  CheckPair("padding", pool.padding(), 0, found);
  if (found.empty()) {
    const PoolGeometry geometry = GeometryOf(pool);
    if (2 * geometry.padding.h > geometry.size.h || 2 * geometry.padding.w > geometry.size.w) {
      found.Add("padding", absl::StrCat("is ", geometry.padding.ToString(),
                                        "; it must be at most half the size, ", geometry.size.ToString()));
    }
  }
  violations.AddAll(kind, found.ToStatus());
}

template <typename Pool>
absl::StatusOr<Shape> InferPool(absl::string_view kind, const Pool& pool, const Shape& input) {
  TANDEM_RETURN_IF_ERROR(CheckImage(kind, input));
  const PoolGeometry geometry = GeometryOf(pool);
  const absl::StatusOr<Size2d> windows = CountPoolWindows(geometry, {input[1], input[2]});
  if (!windows.ok()) return FieldError(absl::StrCat(kind, ".size"), windows.status().message());
  return Shape({input[0], windows->h, windows->w});
}

class MaxPool2dLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "max_pool2d"; }
  void FillDefaults(v1::Layer* layer) const override { FillWindow(layer->mutable_max_pool2d()); }

  absl::Status Check(const v1::Layer& layer) const override {
    FieldViolations violations;
    CheckWindow(field(), layer.max_pool2d(), violations);
    if (violations.empty()) {
      const Size2d size = PairOf(layer.max_pool2d().size());
      if (size.h * size.w > kMaxWindow) {
        violations.Add("max_pool2d.size", absl::StrCat("is ", size.ToString(), ", ", size.h * size.w,
                                                       " elements; a window may have at most ", kMaxWindow));
      }
    }
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    return InferPool(field(), layer.max_pool2d(), input);
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        context.graph.AddNode(std::make_shared<MaxPool2dOp>(GeometryOf(layer.max_pool2d())), {input}));
    return outputs[0];
  }
};

class AveragePool2dLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "average_pool2d"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::AveragePool2d* pool = layer->mutable_average_pool2d();
    FillWindow(pool);
    if (!pool->has_count_include_pad()) pool->set_count_include_pad(true);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    FieldViolations violations;
    CheckWindow(field(), layer.average_pool2d(), violations);
    return violations.ToStatus();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    return InferPool(field(), layer.average_pool2d(), input);
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::AveragePool2d& pool = layer.average_pool2d();
    return context.graph.Add(std::make_shared<AveragePool2dOp>(GeometryOf(pool), pool.count_include_pad()),
                             {input});
  }
};

class GlobalAveragePool2dLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "global_average_pool2d"; }
  absl::Status Check(const v1::Layer& /*layer*/) const override { return absl::OkStatus(); }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(CheckImage(field(), input));
    return Shape({input[0], 1, 1});
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& /*layer*/, ValueId input,
                                LayerContext& context) const override {
    const Shape& shape = context.graph.value(input).shape;
    const PoolGeometry whole{.size = {shape[2], shape[3]}};
    return context.graph.Add(std::make_shared<AveragePool2dOp>(whole, true), {input});
  }
};

// Pools along the rows, then down the columns. A single window could have too many elements.
class GlobalMaxPool2dLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "global_max_pool2d"; }
  absl::Status Check(const v1::Layer& /*layer*/) const override { return absl::OkStatus(); }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(CheckImage(field(), input));
    if (input[1] <= kMaxWindow && input[2] <= kMaxWindow) return Shape({input[0], 1, 1});
    return FieldError(field(), absl::StrCat("takes images of at most ", kMaxWindow, " by ", kMaxWindow,
                                            " pixels, not ", input.ToString(), "; make them smaller first"));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& /*layer*/, ValueId input,
                                LayerContext& context) const override {
    const Shape shape = context.graph.value(input).shape;
    for (const Size2d size : {Size2d{1, shape[3]}, Size2d{shape[2], 1}}) {
      TANDEM_ASSIGN_OR_RETURN(
          const std::vector<ValueId> outputs,
          context.graph.AddNode(std::make_shared<MaxPool2dOp>(PoolGeometry{.size = size}), {input}));
      input = outputs[0];
    }
    return input;
  }
};

}  // namespace

const LayerKind& MaxPool2dKind() { return TheOnly<MaxPool2dLayerKind>(); }

const LayerKind& AveragePool2dKind() { return TheOnly<AveragePool2dLayerKind>(); }

const LayerKind& GlobalAveragePool2dKind() { return TheOnly<GlobalAveragePool2dLayerKind>(); }

const LayerKind& GlobalMaxPool2dKind() { return TheOnly<GlobalMaxPool2dLayerKind>(); }

}  // namespace tandem
