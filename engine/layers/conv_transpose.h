#ifndef TANDEM_ENGINE_LAYERS_CONV_TRANSPOSE_H_
#define TANDEM_ENGINE_LAYERS_CONV_TRANSPOSE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& ConvTranspose2dKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_CONV_TRANSPOSE_H_
