#include "engine/layers/reshape.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/reshape.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

constexpr int kMaxRank = 8;
constexpr int64_t kInferred = -1;

class ReshapeLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "reshape"; }

  absl::Status Check(const v1::Layer& layer) const override {
    const auto& extents = layer.reshape().shape();
    FieldViolations violations;
    if (extents.empty() || extents.size() > kMaxRank) {
      violations.Add("reshape.shape", extents.empty()
                                          ? "is missing; give the new extents of one sample"
                                          : absl::StrCat("has ", extents.size(), " extents; at most ",
                                                         kMaxRank, " are taken"));
    }
    bool inferred = false;
    for (int i = 0; i < extents.size(); ++i) {
      const std::string element = absl::StrCat("reshape.shape[", i, "]");
      if (extents[i] != kInferred) {
        CheckExtent(element, extents[i], 1, violations);
      } else if (inferred) {
        violations.Add(element, "is -1, as another is; at most one extent can follow from the others");
      }
      inferred |= extents[i] == kInferred;
    }
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    std::vector<int64_t> extents(layer.reshape().shape().begin(), layer.reshape().shape().end());
    const int64_t elements = input.elements();
    int64_t known = 1;
    int64_t* inferred = nullptr;
    for (int64_t& extent : extents) {
      if (extent == kInferred) {
        inferred = &extent;
      } else {
        // Above the number of the input's elements, the exact product does not matter.
        known = extent > elements / known ? elements + 1 : known * extent;
      }
    }
    if (inferred != nullptr && known <= elements && elements % known == 0) *inferred = elements / known;
    const bool fits = inferred != nullptr ? *inferred != kInferred : known == elements;
    if (fits) return Shape(std::move(extents));
    return FieldError("reshape.shape",
                      absl::StrCat("[", absl::StrJoin(layer.reshape().shape(), ", "), "] does not hold the ",
                                   elements, " elements of ", input.ToString()));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const Shape& batched = context.graph.value(input).shape;
    TANDEM_ASSIGN_OR_RETURN(const Shape sample, Infer(layer, batched.From(1)));
    return context.graph.Add(std::make_shared<ReshapeOp>(sample.Batched(batched[0])), {input});
  }
};

}  // namespace

const LayerKind& ReshapeKind() { return TheOnly<ReshapeLayerKind>(); }

}  // namespace tandem
