#ifndef TANDEM_ENGINE_LAYERS_GROUP_NORM_H_
#define TANDEM_ENGINE_LAYERS_GROUP_NORM_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& GroupNormKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_GROUP_NORM_H_
