#include "engine/layers/convolution.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/pad.h"
#include "engine/layers/activation.h"
#include "engine/layers/convolution_fields.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

// Returns the geometry, with padding_mode SAME resolved except for RestOf.
Conv2dGeometry GeometryOf(const v1::Conv2d& conv) {
  Conv2dGeometry geometry{.stride = PairOf(conv.stride()),
                          .padding = {0, 0},
                          .dilation = PairOf(conv.dilation()),
                          .groups = conv.groups()};
  if (conv.padding_mode() == v1::PADDING_MODE_SAME) {
    const Size2d kernel = PairOf(conv.kernel());
    geometry.padding = {geometry.dilation.h * (kernel.h - 1) / 2, geometry.dilation.w * (kernel.w - 1) / 2};
  } else if (conv.padding_mode() == v1::PADDING_MODE_EXPLICIT) {
    geometry.padding = PairOf(conv.padding());
  }
  return geometry;
}

// Returns the extra padding of padding_mode SAME below and on the right: a row or column if the total padding
// is odd.
Size2d RestOf(const v1::Conv2d& conv) {
  if (conv.padding_mode() != v1::PADDING_MODE_SAME) return {0, 0};
  const Size2d kernel = PairOf(conv.kernel());
  const Size2d dilation = PairOf(conv.dilation());
  return {dilation.h * (kernel.h - 1) % 2, dilation.w * (kernel.w - 1) % 2};
}

// Checks the modes that compute the padding themselves.
void CheckFoundPadding(const v1::Conv2d& conv, FieldViolations& violations) {
  if (!conv.padding().empty()) {
    violations.Add("padding", absl::StrCat("is given, but ", v1::PaddingMode_Name(conv.padding_mode()),
                                           " finds the padding itself; leave one of them out"));
  }
  const Size2d stride = PairOf(conv.stride());
  if (conv.padding_mode() == v1::PADDING_MODE_SAME && stride != Size2d{1, 1}) {
    violations.Add("stride", absl::StrCat("is ", stride.ToString(), "; padding_mode SAME needs stride 1"));
  }
}

class Conv2dLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "conv2d"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Conv2d* conv = layer->mutable_conv2d();
    FillConvolution(conv);
    if (conv->padding_mode() == v1::PADDING_MODE_UNSPECIFIED)
      conv->set_padding_mode(v1::PADDING_MODE_EXPLICIT);
    if (conv->padding_mode() == v1::PADDING_MODE_EXPLICIT) FillPair(0, conv->mutable_padding());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Conv2d& conv = layer.conv2d();
    FieldViolations found;
    CheckConvolutionSizes(conv, found);
    if (conv.padding_mode() == v1::PADDING_MODE_EXPLICIT) {
      CheckPair("padding", conv.padding(), 0, found);
    } else if (!v1::PaddingMode_IsValid(conv.padding_mode())) {
      found.Add("padding_mode",
                absl::StrCat("is ", static_cast<int>(conv.padding_mode()), ", which is no padding mode"));
    } else if (found.empty()) {
      CheckFoundPadding(conv, found);
    }
    CheckConvolutionRest(conv, found);
    return UnderField(field(), found.ToStatus());
  }

  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const v1::Conv2d& conv = layer.conv2d();
    TANDEM_RETURN_IF_ERROR(CheckChannels(field(), conv, input));
    const Conv2dGeometry geometry = GeometryOf(conv);
    const Size2d rest = RestOf(conv);
    const absl::StatusOr<Size2d> windows =
        CountWindows({input[1] + rest.h, input[2] + rest.w}, PairOf(conv.kernel()), geometry.stride,
                     geometry.padding, geometry.dilation);
    if (!windows.ok()) return FieldError("conv2d.kernel", windows.status().message());
    return Shape({conv.filters(), windows->h, windows->w});
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::Conv2d& conv = layer.conv2d();
    const Size2d kernel = PairOf(conv.kernel());
    const int64_t channels = context.graph.value(input).shape[1];
    if (const Size2d rest = RestOf(conv); rest != Size2d{0, 0}) {
      TANDEM_ASSIGN_OR_RETURN(input,
                              context.graph.Add(std::make_shared<Pad2dOp>(Margins{.after = rest}), {input}));
    }
    const Shape weight_shape({conv.filters(), channels / conv.groups(), kernel.h, kernel.w});
    const double window = static_cast<double>(kernel.h) * kernel.w;
    const Fans fans{.in = window * weight_shape[1], .out = window * static_cast<double>(conv.filters())};
    std::vector<ValueId> inputs = {
        input, AddParameter(context, layer.name(), "weight", weight_shape, conv.weight_initializer(), fans)};
    if (conv.use_bias()) {
      inputs.push_back(AddParameter(context, layer.name(), "bias", Shape({conv.filters()}),
                                    conv.bias_initializer(), fans));
    }
    TANDEM_ASSIGN_OR_RETURN(
        const ValueId output,
        context.graph.Add(std::make_shared<Conv2dOp>(GeometryOf(conv)), std::move(inputs)));
    return AddActivation(conv.activation(), output, context.graph);
  }
};

}  // namespace

const LayerKind& Conv2dKind() { return TheOnly<Conv2dLayerKind>(); }

}  // namespace tandem
