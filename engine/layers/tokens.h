#ifndef TANDEM_ENGINE_LAYERS_TOKENS_H_
#define TANDEM_ENGINE_LAYERS_TOKENS_H_

#include <string>

#include "engine/base/field_violations.h"
#include "engine/layers/sequence.h"

namespace tandem {

// Checks that layers for tokens read the model's input, that no other layer reads it then, and that they are
// in no block. `layers` are those of the model.
void CheckTokens(const Layers& layers, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_TOKENS_H_
