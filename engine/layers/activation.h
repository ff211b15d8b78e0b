#ifndef TANDEM_ENGINE_LAYERS_ACTIVATION_H_
#define TANDEM_ENGINE_LAYERS_ACTIVATION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/graph/graph.h"
#include "engine/layers/layer_kind.h"

namespace tandem {

// Activations as fields of other layers. Unset means identity.
void CheckActivation(absl::string_view field, v1::Activation activation, FieldViolations& violations);
absl::StatusOr<ValueId> AddActivation(v1::Activation activation, ValueId input, Graph& graph);

// Activations as layers.
const LayerKind& ActivationKind();

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_ACTIVATION_H_
