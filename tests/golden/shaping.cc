#include "tests/golden/shaping.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/upsample.h"

namespace tandem {
namespace {

using nlohmann::json;

absl::StatusOr<ValueId> AddFlatten(Graph& graph, Attributes& attributes, ValueId input) {
  const Shape& x = graph.value(input).shape;
  const int64_t start = attributes.Whole("start_dim", 1);
  int64_t end = attributes.Whole("end_dim", -1);
  if (end < 0) end += x.rank();
  if (start < 0 || start > end || end >= x.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot flatten from ", start, " to ", end));
  }
  std::vector<int64_t> extents;
  for (int i = 0; i < x.rank(); ++i) {
    if (i > start && i <= end) {
      extents.back() *= x[i];
    } else {
      extents.push_back(x[i]);
    }
  }
  return graph.Add(std::make_shared<ReshapeOp>(Shape(std::move(extents))), {input});
}

// The whole new shape; one extent may be -1.
absl::StatusOr<ValueId> AddReshape(Graph& graph, Attributes& attributes, ValueId input) {
  std::vector<int64_t> extents;
  int64_t known = 1;
  for (const double extent : attributes.Numbers("shape")) {
    extents.push_back(static_cast<int64_t>(extent));
    if (extents.back() > 0) known *= extents.back();
  }
  for (int64_t& extent : extents) {
    if (extent == -1) extent = graph.value(input).shape.elements() / known;
  }
  return graph.Add(std::make_shared<ReshapeOp>(Shape(std::move(extents))), {input});
}

absl::StatusOr<ValueId> AddConcat(Graph& graph, Attributes& attributes, absl::Span<const ValueId> inputs) {
  const int64_t dim = attributes.Whole("dim", 1);
  const int rank = graph.value(inputs[0]).shape.rank();
  return graph.Add(std::make_shared<ConcatOp>(static_cast<int>(dim < 0 ? dim + rank : dim)),
                   {inputs.begin(), inputs.end()});
}

// The left-to-right sum or product.
template <typename JoinOp>
absl::StatusOr<ValueId> AddJoined(Graph& graph, absl::Span<const ValueId> inputs) {
  ValueId joined = inputs[0];
  for (const ValueId input : inputs.subspan(1)) {
    TANDEM_ASSIGN_OR_RETURN(joined, graph.Add(std::make_shared<JoinOp>(), {joined, input}));
  }
  return joined;
}

absl::StatusOr<ValueId> AddUpsample(Graph& graph, const std::string& type, Attributes& attributes,
                                    ValueId input) {
  const Shape& x = graph.value(input).shape;
  if (x.rank() != 4) return absl::InvalidArgumentError("the input must have 4 dimensions");
  const std::string mode =
      attributes.Text("mode", type.find("bilinear") != std::string::npos ? "bilinear" : "nearest");
  if (mode != "nearest" && mode != "bilinear") {
    return absl::UnimplementedError(absl::StrCat("upsampling by ", mode, " is not offered yet"));
  }
  UpsampleRule rule;
  rule.mode = mode == "nearest" ? UpsampleMode::kNearest : UpsampleMode::kBilinear;
  rule.align_corners = attributes.Flag("align_corners", false);
  if (attributes.Has("size")) {
    rule.size = attributes.Pair("size", {1, 1});
    attributes.Ignore("scale_factor");
  } else {
    const std::vector<double> scale = attributes.Numbers("scale_factor");
    if (scale.empty() || scale.size() > 2) return absl::InvalidArgumentError("scale_factor is missing");
    rule.scale_h = scale[0];
    rule.scale_w = scale.back();
    rule.size = {static_cast<int64_t>(std::floor(static_cast<double>(x[2]) * rule.scale_h)),
                 static_cast<int64_t>(std::floor(static_cast<double>(x[3]) * rule.scale_w))};
    if (attributes.Flag("recompute_scale_factor", false)) rule.scale_h = rule.scale_w = 0;
  }
  return graph.Add(std::make_shared<UpsampleOp>(rule), {input});
}

}  // namespace

absl::StatusOr<ValueId> AddGoldenShaping(Graph& graph, const std::string& type, Attributes& attributes,
                                         const json& attrs, absl::Span<const ValueId> inputs) {
  if (type == "flatten") return AddFlatten(graph, attributes, inputs[0]);
  if (type == "reshape") return AddReshape(graph, attributes, inputs[0]);
  if (type == "concat" || type == "cat") return AddConcat(graph, attributes, inputs);
  if (type == "add") return AddJoined<AddOp>(graph, inputs);
  if (type == "multiply" || type == "mul") return AddJoined<MultiplyOp>(graph, inputs);
  if (type.rfind("upsample", 0) == 0 || type == "interpolate") {
    return AddUpsample(graph, type, attributes, inputs[0]);
  }
  if (type == "dropout") {
    attributes.Ignore("p");
    attributes.Ignore("inplace");
    const bool drops = attributes.Flag("training", true) && attrs.value("p", 0.5) != 0;
    if (drops) return absl::UnimplementedError("dropout by PyTorch's random numbers is not offered");
    return inputs[0];
  }
  return kNoValue;
}

}  // namespace tandem
