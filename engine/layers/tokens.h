#ifndef TANDEM_ENGINE_LAYERS_TOKENS_H_
#define TANDEM_ENGINE_LAYERS_TOKENS_H_

#include <string>

#include "engine/base/field_violations.h"
#include "engine/layers/sequence.h"

namespace tandem {

// That layers which read tokens read a model's input, that nothing else reads it then, and that none of them
// stands within a block. `layers` are those of the model.
void CheckTokens(const Layers& layers, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_TOKENS_H_
