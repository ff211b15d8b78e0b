#ifndef TANDEM_ENGINE_LAYERS_SOFTMAX_H_
#define TANDEM_ENGINE_LAYERS_SOFTMAX_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& SoftmaxKind();
const LayerKind& LogSoftmaxKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_SOFTMAX_H_
