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

// Names of layers, in which '*' stands for any characters and '?' for one.
using LayerPatterns = google::protobuf::RepeatedPtrField<std::string>;

// A network's layers, by whole names, and the tensors that they keep.
struct LayerTable {
  ModelTrace trace;
  std::vector<Parameter> parameters;  // Their values are of no graph that is left.
  std::vector<Statistic> statistics;
};

// What a network reads: tokens (int32) where an embedding reads them, else numbers (float32).
DType InputTypeOf(const v1::Model& model);

// The layers of a model that CheckModel takes.
absl::StatusOr<LayerTable> ListLayers(const v1::Model& model);

bool MatchesAny(const LayerPatterns& patterns, absl::string_view name);

// Names of the parameters and statistics of the layers that match one of the patterns; with a block, of all
// within it.
std::set<std::string> TensorsOf(const LayerTable& table, const LayerPatterns& patterns);

// That each pattern matches a layer with parameters or statistics; what is wrong is "<field>[1]".
void CheckLayerPatterns(const LayerTable& table, absl::string_view field, const LayerPatterns& patterns,
                        FieldViolations& violations);

// That the frozen layers of a job whose model is right are there, and leave something to train.
void CheckFrozenLayers(const v1::JobSpec& spec, FieldViolations& violations);

// BuildOptions of a job's model. `spec` outlives it.
BuildOptions BuildOptionsOf(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_LAYER_SELECTION_H_
