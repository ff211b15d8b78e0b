#ifndef TANDEM_ENGINE_LAYERS_TOKENS_H_
#define TANDEM_ENGINE_LAYERS_TOKENS_H_

#include <string>

#include "engine/base/field_violations.h"
#include "engine/layers/sequence.h"

namespace tandem {

// Checks the layers that read tokens. Such a layer must read the model's input and must not be in a block. If
// one exists, no other kind of layer may read the model's input. `layers` are the model's.
void CheckTokens(const Layers& layers, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_TOKENS_H_
