#ifndef TANDEM_ENGINE_LAYERS_POOLING_H_
#define TANDEM_ENGINE_LAYERS_POOLING_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& MaxPool2dKind();
const LayerKind& AveragePool2dKind();
const LayerKind& GlobalAveragePool2dKind();
const LayerKind& GlobalMaxPool2dKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_POOLING_H_
