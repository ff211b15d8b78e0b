#ifndef TANDEM_ENGINE_LAYERS_DENSE_H_
#define TANDEM_ENGINE_LAYERS_DENSE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& DenseKind();
const LayerKind& FlattenKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_DENSE_H_
