#ifndef TANDEM_ENGINE_LAYERS_NORM_FIELDS_H_
#define TANDEM_ENGINE_LAYERS_NORM_FIELDS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "engine/layers/fields.h"
#include "engine/layers/layer_kind.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// The common fields of v1::BatchNorm, v1::GroupNorm and v1::LayerNorm. `Norm` is one of these messages.

inline constexpr double kDefaultNormEpsilon = 1e-5;

template <typename Norm>
void FillNorm(Norm* norm) {
  if (!norm->has_epsilon()) norm->set_epsilon(kDefaultNormEpsilon);
  if (!norm->has_affine()) norm->set_affine(true);
  FillInitializer(Ones(), norm->mutable_weight_initializer());
  FillInitializer(Zeros(), norm->mutable_bias_initializer());
}

// Returns the op's inputs: `input`, a weight and a bias of `shape`. Declares the weight as a parameter if the
// norm is affine, and the bias if `has_bias`. Otherwise the weight is 1 and the bias is 0.
template <typename Norm>
std::vector<ValueId> NormInputs(const Norm& norm, bool has_bias, absl::string_view layer, const Shape& shape,
                                ValueId input, LayerContext& context) {
  const auto add = [&](bool learned, absl::string_view name, const v1::Initializer& initializer,
                       double otherwise) {
    return learned ? AddParameter(context, layer, name, shape, initializer, Fans())
                   : context.graph.AddConstant(otherwise, context.dtype, shape);
  };
  const ValueId weight = add(norm.affine(), "weight", norm.weight_initializer(), 1);
  const ValueId bias = add(has_bias, "bias", norm.bias_initializer(), 0);
  return {input, weight, bias};
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_NORM_FIELDS_H_
