#ifndef TANDEM_ENGINE_LAYERS_SEQUENCE_H_
#define TANDEM_ENGINE_LAYERS_SEQUENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "engine/base/field_violations.h"
#include "engine/graph/graph.h"
#include "engine/layers/layer_kind.h"
#include "engine/tensor/shape.h"
#include "google/protobuf/repeated_field.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// Layers in their order. Each reads earlier layers of the same sequence, or its input. A model and a block
// have a sequence.
using Layers = google::protobuf::RepeatedPtrField<v1::Layer>;

// The most layers of a model. Inner layers count for each repetition of their block.
inline constexpr int kMaxLayers = 4096;

// The most inputs of a layer.
inline constexpr int kMaxInputs = 1024;

// The most operations of a network's forward pass. Planning takes a time that grows with their square.
inline constexpr size_t kMaxOperations = 32768;

// The most elements of a single sample anywhere in a network.
inline constexpr int64_t kMaxSampleElements = int64_t{1} << 36;

// Returns the number of layers for kMaxLayers. Stops counting above it.
int64_t CountLayers(const Layers& layers);

// Names every layer, and sets missing fields to their defaults.
void FillSequence(Layers* layers);

// Checks every layer. Fields in errors are under `path` ("layers"). Without `input`, makes the checks that
// need no shape. Returns the shapes of the layers' outputs, if known.
std::vector<absl::optional<Shape>> CheckSequence(const Layers& layers, absl::string_view path,
                                                 const absl::optional<Shape>& input,
                                                 FieldViolations& violations);

// Appends a checked sequence to the graph, and returns the last layer's output. INVALID_ARGUMENT with the
// layer if a tensor would be too large, or if the network would have more than kMaxOperations.
absl::StatusOr<ValueId> BuildSequence(const Layers& layers, absl::string_view path, ValueId input,
                                      LayerContext& context);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_SEQUENCE_H_
