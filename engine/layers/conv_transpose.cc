#include "engine/layers/conv_transpose.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/channel_bias.h"
#include "engine/graph/ops/convolution.h"
#include "engine/layers/activation.h"
#include "engine/layers/convolution_fields.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

Conv2dGeometry GeometryOf(const v1::ConvTranspose2d& conv) {
  return {.stride = PairOf(conv.stride()),
          .padding = PairOf(conv.padding()),
          .dilation = PairOf(conv.dilation()),
          .groups = conv.groups()};
}

// Returns the output extent of an image's extent. All numbers are at most kMaxExtent.
int64_t Spread(int64_t extent, int64_t kernel, int64_t stride, int64_t padding, int64_t output_padding,
               int64_t dilation) {
  return (extent - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1;
}

Size2d SpreadSize(const v1::ConvTranspose2d& conv, Size2d image) {
  const Size2d kernel = PairOf(conv.kernel());
  const Size2d extra = PairOf(conv.output_padding());
  const Conv2dGeometry g = GeometryOf(conv);
  return {Spread(image.h, kernel.h, g.stride.h, g.padding.h, extra.h, g.dilation.h),
          Spread(image.w, kernel.w, g.stride.w, g.padding.w, extra.w, g.dilation.w)};
}

class ConvTranspose2dLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "conv_transpose2d"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::ConvTranspose2d* conv = layer->mutable_conv_transpose2d();
    FillConvolution(conv);
    FillPair(0, conv->mutable_padding());
    FillPair(0, conv->mutable_output_padding());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::ConvTranspose2d& conv = layer.conv_transpose2d();
    FieldViolations found;
    CheckConvolutionSizes(conv, found);
    CheckPair("padding", conv.padding(), 0, found);
    CheckPair("output_padding", conv.output_padding(), 0, found);
    if (found.empty()) {
      const Size2d stride = PairOf(conv.stride());
      const Size2d extra = PairOf(conv.output_padding());
      if (extra.h >= stride.h || extra.w >= stride.w) {
        found.Add("output_padding", absl::StrCat("is ", extra.ToString(),
                                                 "; it must be less than the stride, ", stride.ToString()));
      }
    }
    CheckConvolutionRest(conv, found);
    return UnderField(field(), found.ToStatus());
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    const v1::ConvTranspose2d& conv = layer.conv_transpose2d();
    TANDEM_RETURN_IF_ERROR(CheckChannels(field(), conv, input));
    const Size2d size = SpreadSize(conv, {input[1], input[2]});
    if (size.h >= 1 && size.w >= 1 && size.h <= kMaxExtent && size.w <= kMaxExtent) {
      return Shape({conv.filters(), size.h, size.w});
    }
    return FieldError(
        "conv_transpose2d.padding",
        absl::StrCat("is ", PairOf(conv.padding()).ToString(), ", which makes ", input.ToString(),
                     " an image of ", size.ToString(), "; each must be from 1 to ", kMaxExtent));
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::ConvTranspose2d& conv = layer.conv_transpose2d();
    const Size2d kernel = PairOf(conv.kernel());
    const Shape shape = context.graph.value(input).shape;
    const Shape weight_shape({shape[1], conv.filters() / conv.groups(), kernel.h, kernel.w});
    // As PyTorch counts them for a weight of this shape.
    const double window = static_cast<double>(kernel.h) * static_cast<double>(kernel.w);
    const Fans fans{.in = window * static_cast<double>(weight_shape[1]),
                    .out = window * static_cast<double>(weight_shape[0])};
    const ValueId weight =
        AddParameter(context, layer.name(), "weight", weight_shape, conv.weight_initializer(), fans);
    const Size2d size = SpreadSize(conv, {shape[2], shape[3]});
    TANDEM_ASSIGN_OR_RETURN(
        ValueId output,
        context.graph.Add(std::make_shared<Conv2dGradInputOp>(
                              GeometryOf(conv), Shape({shape[0], conv.filters(), size.h, size.w})),
                          {input, weight}));
    if (conv.use_bias()) {
      const ValueId bias =
          AddParameter(context, layer.name(), "bias", Shape({conv.filters()}), conv.bias_initializer(), fans);
      TANDEM_ASSIGN_OR_RETURN(output, context.graph.Add(std::make_shared<ChannelBiasOp>(), {output, bias}));
    }
    return AddActivation(conv.activation(), output, context.graph);
  }
};

}  // namespace

const LayerKind& ConvTranspose2dKind() { return TheOnly<ConvTranspose2dLayerKind>(); }

}  // namespace tandem
