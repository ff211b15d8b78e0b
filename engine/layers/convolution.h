#ifndef TANDEM_ENGINE_LAYERS_CONVOLUTION_H_
#define TANDEM_ENGINE_LAYERS_CONVOLUTION_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& Conv2dKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_CONVOLUTION_H_
