#ifndef TANDEM_ENGINE_LAYERS_LSTM_H_
#define TANDEM_ENGINE_LAYERS_LSTM_H_

#include "engine/layers/layer_kind.h"

namespace tandem {

const LayerKind& LstmKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_LSTM_H_
