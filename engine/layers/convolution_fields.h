#ifndef TANDEM_ENGINE_LAYERS_CONVOLUTION_FIELDS_H_
#define TANDEM_ENGINE_LAYERS_CONVOLUTION_FIELDS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/layers/activation.h"
#include "engine/layers/fields.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// The common fields of v1::Conv2d and v1::ConvTranspose2d, without the padding. `Conv` is either message.
// Fields in errors are relative to it, except in CheckChannels.

template <typename Conv>
void FillConvolution(Conv* conv) {
  FillPair(1, conv->mutable_stride());
  FillPair(1, conv->mutable_dilation());
  if (conv->groups() == 0) conv->set_groups(1);
  if (!conv->has_use_bias()) conv->set_use_bias(true);
  if (conv->activation() == v1::ACTIVATION_UNSPECIFIED) conv->set_activation(v1::ACTIVATION_IDENTITY);
  FillInitializer(XavierUniform(), conv->mutable_weight_initializer());
  FillInitializer(Zeros(), conv->mutable_bias_initializer());
}

template <typename Conv>
void CheckConvolutionSizes(const Conv& conv, FieldViolations& violations) {
  CheckExtent("filters", conv.filters(), 1, violations);
  CheckPair("kernel", conv.kernel(), 1, violations);
  CheckPair("stride", conv.stride(), 1, violations);
  CheckPair("dilation", conv.dilation(), 1, violations);
  CheckExtent("groups", conv.groups(), 1, violations);
  if (conv.groups() > 0 && conv.filters() % conv.groups() != 0) {
    violations.Add("groups",
                   absl::StrCat("is ", conv.groups(), "; it must divide the filters, ", conv.filters()));
  }
}

template <typename Conv>
void CheckConvolutionRest(const Conv& conv, FieldViolations& violations) {
  CheckActivation("activation", conv.activation(), violations);
  violations.AddAll("weight_initializer", CheckInitializer(conv.weight_initializer()));
  violations.AddAll("bias_initializer", CheckInitializer(conv.bias_initializer()));
}

// Checks that the input is images with channels divisible by the groups. Fields in errors begin with `field`.
template <typename Conv>
absl::Status CheckChannels(absl::string_view field, const Conv& conv, const Shape& input) {
  TANDEM_RETURN_IF_ERROR(CheckImage(field, input));
  if (input[0] % conv.groups() == 0) return absl::OkStatus();
  return FieldError(absl::StrCat(field, ".groups"),
                    absl::StrCat("is ", conv.groups(), "; it must divide the ", input[0],
                                 " channels of the input ", input.ToString()));
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_CONVOLUTION_FIELDS_H_
