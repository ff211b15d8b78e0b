#ifndef TANDEM_ENGINE_TRAINING_LAYER_SELECTION_H_
#define TANDEM_ENGINE_TRAINING_LAYER_SELECTION_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/layers/model.h"
#include "engine/tensor/dtype.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Patterns of layer names: '*' matches any characters, '?' a single character.
using LayerPatterns = google::protobuf::RepeatedPtrField<std::string>;

// A network's layers, by whole names, and their tensors.
struct LayerTable {
  ModelTrace trace;
  std::vector<Parameter> parameters;  // Their values belong to a graph that no longer exists.
  std::vector<Statistic> statistics;
};

// Returns the type of a network's input: int32 tokens if an embedding reads them, else float32 numbers.
DType InputTypeOf(const v1::Model& model);

// Returns the layers of a model. CheckModel accepts it.
absl::StatusOr<LayerTable> ListLayers(const v1::Model& model);

bool MatchesAny(const LayerPatterns& patterns, absl::string_view name);

// Returns the names of the parameters and statistics of all layers that match a pattern. A block includes the
// layers within it.
std::set<std::string> TensorsOf(const LayerTable& table, const LayerPatterns& patterns);

// Checks that each pattern matches a layer with parameters or statistics. A fault's field is "<field>[1]".
void CheckLayerPatterns(const LayerTable& table, absl::string_view field, const LayerPatterns& patterns,
                        FieldViolations& violations);

// Checks that the frozen layers of a job exist and leave a parameter to train. The model is right.
void CheckFrozenLayers(const v1::JobSpec& spec, FieldViolations& violations);

// Returns the BuildOptions of a job's model. `spec` must outlive them.
BuildOptions BuildOptionsOf(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_LAYER_SELECTION_H_
