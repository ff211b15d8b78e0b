#ifndef TANDEM_ENGINE_LAYERS_RESHAPE_H_
#define TANDEM_ENGINE_LAYERS_RESHAPE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& ReshapeKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_RESHAPE_H_
