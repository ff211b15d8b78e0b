#ifndef TANDEM_ENGINE_LAYERS_UPSAMPLE_H_
#define TANDEM_ENGINE_LAYERS_UPSAMPLE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& UpsampleKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_UPSAMPLE_H_
