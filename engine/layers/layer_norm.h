#ifndef TANDEM_ENGINE_LAYERS_LAYER_NORM_H_
#define TANDEM_ENGINE_LAYERS_LAYER_NORM_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& LayerNormKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_LAYER_NORM_H_
