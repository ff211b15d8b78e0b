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

// Names every unnamed layer by its kind and a number, skipping the names of other layers. Sets missing fields
// to their defaults.
void FillModelDefaults(v1::Model* model);

// Sets the initializers of all weights that Model.weight_initializer concerns, in blocks too. Without
// `replaces`, only missing initializers are set. An initializer without a kind changes nothing.
void SetWeightInitializers(const v1::Initializer& initializer, bool replaces,
                           google::protobuf::RepeatedPtrField<v1::Layer>* layers);

// Checks every layer, and returns the shape of its output for a single sample, in the order of the layers.
// `model` has its defaults. INVALID_ARGUMENT with all wrong fields, relative to the Model
// ("layers[3].conv2d.kernel"). Messages name the layers and the shapes. A layer with an unknown input is
// checked as far as possible.
absl::StatusOr<std::vector<Shape>> CheckModel(const v1::Model& model);

// Returns the shape of a sample that the model takes. Not checked.
Shape InputShapeOf(const v1::Model& model);

// Returns whether an embedding reads the model's input as tokens. Otherwise the input is numbers.
bool ReadsTokens(const v1::Model& model);

// A model in a graph.
struct Network {
  ValueId output = kNoValue;
  // In the order of the layers.
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
};

// Options of BuildModel.
struct BuildOptions {
  // Returns whether the layer with this whole name ("<block>.<layer>") is frozen. A frozen block includes its
  // inner layers. The parameters of a frozen layer are marked. A frozen batch_norm uses its running
  // statistics in training too. Default: no layer is frozen.
  std::function<bool(absl::string_view name)> is_frozen = nullptr;
  // Receives the layers. May be null.
  ModelTrace* trace = nullptr;
  // The source of random numbers of a training graph.
  RandomSource random = {};
  // The share of a training graph.
  BatchShare batch = {};
};

// Appends a model, which CheckModel accepts, to `graph`. `input` is a batch of samples with type `dtype`, or
// int32 if ReadsTokens. If `training`, layers act as in training. INVALID_ARGUMENT with the layer if a tensor
// would be too large.
absl::StatusOr<Network> BuildModel(const v1::Model& model, ValueId input, DType dtype, bool training,
                                   Graph& graph, const BuildOptions& options = {});

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_MODEL_H_
