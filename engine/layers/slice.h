#ifndef TANDEM_ENGINE_LAYERS_SLICE_H_
#define TANDEM_ENGINE_LAYERS_SLICE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& SliceKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_SLICE_H_
