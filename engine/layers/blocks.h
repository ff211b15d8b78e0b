#ifndef TANDEM_ENGINE_LAYERS_BLOCKS_H_
#define TANDEM_ENGINE_LAYERS_BLOCKS_H_

#include <functional>
#include <string>

#include "engine/layers/layer_kind.h"
#include "engine/layers/sequence.h"

namespace tandem {

// Kinds with inner layers.
const LayerKind& ResidualKind();
const LayerKind& RepeatKind();

// Calls visit(layers, path, suffix) for every inner sequence of the layer. `path` is its field within the
// layer ("residual.layers"). "<layer>.<suffix>" precedes the names of its layers. A repeated sequence is
// visited for each repetition.
void ForEachBlock(const v1::Layer& layer,
                  const std::function<void(const Layers& layers, const std::string& path,
                                           const std::string& suffix)>& visit);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_BLOCKS_H_
