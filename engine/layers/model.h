#ifndef TANDEM_ENGINE_LAYERS_MODEL_H_
#define TANDEM_ENGINE_LAYERS_MODEL_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/layers/layer_kind.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// Names every layer that has no name, by its kind and count so far, past counts whose names other layers were
// given, and sets the layers' fields that have a default and are left out.
void FillModelDefaults(v1::Model* model);

// Checks every layer and returns the shape of its output for one sample, in the order of the layers. `model`
// has its defaults filled in. INVALID_ARGUMENT with all fields at fault, relative to the Model
// ("layers[3].conv2d.kernel"); messages name the layers and the shapes. A layer whose input cannot be known
// is checked as far as it can be.
absl::StatusOr<std::vector<Shape>> CheckModel(const v1::Model& model);

// Whether the model's input is tokens, which an embedding reads; else it is numbers.
bool ReadsTokens(const v1::Model& model);

// A model in a graph.
struct Network {
  ValueId output = kNoValue;
  // In the order of the layers.
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
};

// What else is to be known of the layers as they are built.
struct BuildOptions {
  // Whether the layer of a whole name ("<block>.<layer>"), and with a block all within it, is not trained:
  // its parameters are marked so, and it does in training what it does otherwise. Default: none is.
  std::function<bool(absl::string_view name)> is_frozen = nullptr;
  // Gets the layers; may be null.
  ModelTrace* trace = nullptr;
  // Where the layers of a training graph draw random numbers from, where they draw any.
  RandomSource random = {};
  // Of a training graph.
  BatchShare batch = {};
};

// Appends a model that CheckModel takes to `graph`; `input` is a batch of samples of type `dtype`, or int32
// where ReadsTokens.
// With `training`, layers do what they do in training alone. INVALID_ARGUMENT, with the layer, where a tensor
// would be too large.
absl::StatusOr<Network> BuildModel(const v1::Model& model, ValueId input, DType dtype, bool training,
                                   Graph& graph, const BuildOptions& options = {});

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_MODEL_H_
