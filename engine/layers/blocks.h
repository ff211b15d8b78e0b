#ifndef TANDEM_ENGINE_LAYERS_BLOCKS_H_
#define TANDEM_ENGINE_LAYERS_BLOCKS_H_

#include <functional>
#include <string>

#include "engine/layers/layer_kind.h"
#include "engine/layers/sequence.h"

namespace tandem {

// Kinds that hold layers.
const LayerKind& ResidualKind();
const LayerKind& RepeatKind();

// Calls visit(layers, path, suffix) for every sequence that the layer is built from: `path` is its field
// within the layer ("residual.layers"), and "<layer>.<suffix>" comes before the names of its layers. A
// repeated one is visited as often.
void ForEachBlock(const v1::Layer& layer,
                  const std::function<void(const Layers& layers, const std::string& path,
                                           const std::string& suffix)>& visit);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_BLOCKS_H_
