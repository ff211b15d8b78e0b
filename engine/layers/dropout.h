#ifndef TANDEM_ENGINE_LAYERS_DROPOUT_H_
#define TANDEM_ENGINE_LAYERS_DROPOUT_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& DropoutKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_DROPOUT_H_
