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

// Layers in their order, each reading earlier ones of the same sequence or its input: those of a model, and
// those within a block.
using Layers = google::protobuf::RepeatedPtrField<v1::Layer>;

// The most layers that a model may have, those within blocks counted as often as they are repeated.
inline constexpr int kMaxLayers = 4096;

// The most inputs that a layer of several may have.
inline constexpr int kMaxInputs = 1024;

// The most operations of a network, forwards: what is planned for all that follow from them takes a time that
// grows with their square.
inline constexpr size_t kMaxOperations = 32768;

// The most elements of one sample anywhere in a network.
inline constexpr int64_t kMaxSampleElements = int64_t{1} << 36;

// Layers as they count for kMaxLayers; not counted beyond it.
int64_t CountLayers(const Layers& layers);

// Names every layer and sets the fields that have a default and are left out.
void FillSequence(Layers* layers);

// Checks every layer, fields under `path` ("layers"), as far as can be without an input's shape where `input`
// is not known. Returns the shapes of the layers' outputs, where they are known.
std::vector<absl::optional<Shape>> CheckSequence(const Layers& layers, absl::string_view path,
                                                 const absl::optional<Shape>& input,
                                                 FieldViolations& violations);

// Appends a checked sequence to the graph and returns the last layer's output. INVALID_ARGUMENT, with the
// layer, where a tensor would be too large, or the network have more than kMaxOperations.
absl::StatusOr<ValueId> BuildSequence(const Layers& layers, absl::string_view path, ValueId input,
                                      LayerContext& context);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_SEQUENCE_H_
