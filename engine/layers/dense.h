#ifndef TANDEM_ENGINE_LAYERS_DENSE_H_
#define TANDEM_ENGINE_LAYERS_DENSE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& DenseKind();
const LayerKind& FlattenKind();

// Appends input weight^T + bias with `units` outputs and returns the sum. The parameters are
// "<layer>.<prefix>weight" and "<layer>.<prefix>bias". A null `bias_initializer` means no bias. Errors as
// Graph::Add.
absl::StatusOr<ValueId> AddLinear(absl::string_view layer, absl::string_view prefix, ValueId input,
                                  int64_t units, const v1::Initializer& weight_initializer,
                                  const v1::Initializer* bias_initializer, LayerContext& context);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_DENSE_H_
