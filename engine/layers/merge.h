#ifndef TANDEM_ENGINE_LAYERS_MERGE_H_
#define TANDEM_ENGINE_LAYERS_MERGE_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

// Kinds with several inputs and a single output.
const LayerKind& AddKind();
const LayerKind& MultiplyKind();
const LayerKind& ConcatKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_MERGE_H_
