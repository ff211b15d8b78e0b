#ifndef TANDEM_ENGINE_LAYERS_LAYER_KIND_H_
#define TANDEM_ENGINE_LAYERS_LAYER_KIND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/initializers/initializer.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// A learned tensor of a network.
struct Parameter {
  std::string name;  // "<layer>.weight"
  ValueId value = kNoValue;
  Shape shape;
  v1::Initializer initializer;
  Fans fans;
  bool frozen = false;  // The layer is not trained.
  // The row that is initially zero, for any initializer. kNoRow: none.
  int64_t zero_row = kNoRow;

  static constexpr int64_t kNoRow = -1;
};

// A running statistic of a network. Each replica has its own. It is not learned by gradients, but is a part
// of the model.
struct Statistic {
  std::string name;  // "<layer>.running_mean"
  ValueId value = kNoValue;
  Shape shape;
  double initial = 0;   // The initial value of each element.
  bool frozen = false;  // The layer is not trained, so the statistic stays.
};

// The part of a graph that a layer has added. A block includes its inner layers.
struct BuiltLayer {
  std::string name;                 // The whole name: "<block>.<layer>".
  std::string kind;                 // LayerKind::field of its kind.
  std::vector<std::string> inputs;  // Whole names of the layers that it reads. "input" is the sample.
  ValueId output = kNoValue;
  // Ranges of the graph's nodes and of the network's parameters and statistics. The ends are exclusive.
  NodeId first_node = 0, end_node = 0;
  size_t first_parameter = 0, end_parameter = 0;
  size_t first_statistic = 0, end_statistic = 0;
};

// The layers of a network in the order of building. Inner layers come before their block.
struct ModelTrace {
  std::vector<BuiltLayer> layers;
  std::map<ValueId, std::string> names;  // Names of the layers that computed values, and of the input.
};

// The source of random numbers for a training graph's layers. The numbers do not depend on how a batch is
// dealt to replicas.
struct RandomSource {
  uint64_t seed = 0;         // Of the job.
  ValueId step = kNoValue;   // int64 []: the number of earlier steps.
  int64_t first_sample = 0;  // The place of this graph's first sample in the whole batch.
};

// The samples of a training graph among those of all replicas.
struct BatchShare {
  int replicas = 1;
  int rank = 0;
  double share = 1;  // This graph's share of the whole batch.
  // Why a layer cannot use the whole batch. Null if it can.
  const char* fault = nullptr;
};

// The target of a layer's nodes, parameters and statistics.
struct LayerContext {
  Graph& graph;
  DType dtype;    // Of parameters and activations.
  bool training;  // Whether layers act as in training.
  std::vector<Parameter>& parameters;
  std::vector<Statistic>& statistics;
  RandomSource random = {};  // For training.
  BatchShare batch = {};     // For training.
  std::string prefix = "";   // Prefix of the names of inner layers: "<block>.".
  // Returns whether the layer with this whole name is frozen. Null: no layer is.
  const std::function<bool(absl::string_view name)>* is_frozen = nullptr;
  bool frozen = false;          // Whether the current layer is frozen.
  ModelTrace* trace = nullptr;  // Receives the layers. May be null.
};

// Declares a layer's parameter as a variable.
inline ValueId AddParameter(LayerContext& context, absl::string_view layer, absl::string_view name,
                            Shape shape, const v1::Initializer& initializer, Fans fans) {
  const std::string full_name = absl::StrCat(context.prefix, layer, ".", name);
  const ValueId value = context.graph.AddVariable(full_name, VariableKind::kParameter, context.dtype, shape);
  context.parameters.push_back({full_name, value, std::move(shape), initializer, fans, context.frozen});
  return value;
}

// Declares a layer's statistic as a variable.
inline ValueId AddStatistic(LayerContext& context, absl::string_view layer, absl::string_view name,
                            Shape shape, double initial) {
  const std::string full_name = absl::StrCat(context.prefix, layer, ".", name);
  const ValueId value = context.graph.AddVariable(full_name, VariableKind::kStatistic, context.dtype, shape);
  context.statistics.push_back({full_name, value, std::move(shape), initial, context.frozen});
  return value;
}

// The rules of a kind of layer. A kind has a message in layer.proto, a file in this room and a row in
// FindLayerKind. Shapes are those of a single sample. Graph values have the batch as their first dimension.
// Fields in errors are relative to the v1::Layer ("conv2d.kernel[0]"). Immutable.
class LayerKind {
 public:
  virtual ~LayerKind() = default;

  // Returns the kind's field of v1::Layer: "conv2d".
  virtual absl::string_view field() const = 0;
  // Sets missing fields to their defaults.
  virtual void FillDefaults(v1::Layer* /*layer*/) const {}
  // Return the smallest and the largest number of inputs.
  virtual int least_inputs() const { return 1; }
  virtual int most_inputs() const { return 1; }
  // Returns names of inner parts with parameters: "<layer>.<name>.weight".
  virtual std::vector<std::string> InnerNames(const v1::Layer& /*layer*/) const { return {}; }
  // Returns whether the input is int32 tokens, which only a model's input can be. Other kinds read numbers.
  virtual bool reads_tokens() const { return false; }
  // Returns whether the layer can only be the model's first layer.
  virtual bool must_be_first() const { return false; }

  // The next functions need a layer with its defaults.

  // Makes the checks that do not depend on the inputs. INVALID_ARGUMENT with the wrong fields.
  virtual absl::Status Check(const v1::Layer& layer) const = 0;
  // Returns the shape of the output. Call it after Check. INVALID_ARGUMENT with the wrong field if the layer
  // does not accept `inputs`.
  virtual absl::StatusOr<Shape> InferFrom(const v1::Layer& layer, absl::Span<const Shape> inputs) const = 0;
  // Appends the layer to the graph and returns its output. Call it after InferFrom.
  virtual absl::StatusOr<ValueId> BuildFrom(const v1::Layer& layer, absl::Span<const ValueId> inputs,
                                            LayerContext& context) const = 0;
};

// A kind with a single input.
class OneInputLayerKind : public LayerKind {
 public:
  absl::StatusOr<Shape> InferFrom(const v1::Layer& layer, absl::Span<const Shape> inputs) const final {
    return Infer(layer, inputs[0]);
  }
  absl::StatusOr<ValueId> BuildFrom(const v1::Layer& layer, absl::Span<const ValueId> inputs,
                                    LayerContext& context) const final {
    return Build(layer, inputs[0], context);
  }

 private:
  virtual absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const = 0;
  virtual absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input,
                                        LayerContext& context) const = 0;
};

// Returns the only object of a kind. The object is never destroyed.
template <typename Kind>
const LayerKind& TheOnly() {
  static const Kind* const kind = new Kind;
  return *kind;
}

// Returns the rules of a kind, or null for KIND_NOT_SET.
const LayerKind* FindLayerKind(v1::Layer::KindCase kind);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_LAYER_KIND_H_
