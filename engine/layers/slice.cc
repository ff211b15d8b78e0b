#include "engine/layers/slice.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/concat.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

class SliceLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "slice"; }

  void FillDefaults(v1::Layer* layer) const override {
    if (!layer->slice().has_axis()) layer->mutable_slice()->set_axis(0);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    FieldViolations violations;
    CheckExtent("slice.start", layer.slice().start(), 0, violations);
    if (layer.slice().size() != 0) CheckExtent("slice.size", layer.slice().size(), 1, violations);
    return violations.ToStatus();
  }

 private:
  // Returns the number of indices that are kept, of `extent`.
  static int64_t SizeOf(const v1::Slice& slice, int64_t extent) {
    return slice.size() == 0 ? extent - slice.start() : slice.size();
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const v1::Slice& slice = layer.slice();
    TANDEM_ASSIGN_OR_RETURN(const int axis, ResolveAxis("slice.axis", slice.axis(), input));
    const int64_t extent = input[axis];
    if (slice.start() >= extent) {
      return FieldError("slice.start", absl::StrCat("is ", slice.start(), "; dimension ", axis, " of ",
                                                    input.ToString(), " ends at index ", extent - 1));
    }
    const int64_t size = SizeOf(slice, extent);
    if (size > extent - slice.start()) {
      return FieldError("slice.size",
                        absl::StrCat("is ", size, "; dimension ", axis, " of ", input.ToString(), " has ",
                                     extent - slice.start(), " indices from ", slice.start()));
    }
    return input.WithExtent(axis, size);
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::Slice& slice = layer.slice();
    const Shape& batch = context.graph.value(input).shape;
    const int axis = BatchedAxis(slice.axis(), batch);
    const int64_t size = SizeOf(slice, batch[axis]);
    const int64_t after = batch[axis] - slice.start() - size;
    std::vector<int64_t> sizes;
    if (slice.start() > 0) sizes.push_back(slice.start());
    const size_t kept = sizes.size();
    sizes.push_back(size);
    if (after > 0) sizes.push_back(after);
    if (sizes.size() == 1) return input;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> parts,
                            context.graph.AddNode(std::make_shared<SplitOp>(axis, sizes), {input}));
    return parts[kept];
  }
};

}  // namespace

const LayerKind& SliceKind() { return TheOnly<SliceLayerKind>(); }

}  // namespace tandem
