#ifndef TANDEM_ENGINE_LAYERS_ATTENTION_H_
#define TANDEM_ENGINE_LAYERS_ATTENTION_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& MultiHeadAttentionKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_ATTENTION_H_
