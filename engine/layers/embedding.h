#ifndef TANDEM_ENGINE_LAYERS_EMBEDDING_H_
#define TANDEM_ENGINE_LAYERS_EMBEDDING_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& EmbeddingKind();
const LayerKind& PositionalEmbeddingKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_EMBEDDING_H_
