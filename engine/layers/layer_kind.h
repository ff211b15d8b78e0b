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
  bool frozen = false;  // Of a layer that is not trained.
  // The row that is zero at first, whatever the initializer; kNoRow: none is.
  int64_t zero_row = kNoRow;

  static constexpr int64_t kNoRow = -1;
};

// A running statistic of a network, a replica's own: not learned by gradients, but part of the model.
struct Statistic {
  std::string name;  // "<layer>.running_mean"
  ValueId value = kNoValue;
  Shape shape;
  double initial = 0;   // Of each element.
  bool frozen = false;  // Of a layer that is not trained: it stays.
};

// What one layer, with those within it where it is a block, has added to a graph.
struct BuiltLayer {
  std::string name;                 // Whole: "<block>.<layer>".
  std::string kind;                 // LayerKind::field of it.
  std::vector<std::string> inputs;  // Whole names of the layers that it reads; "input" is the sample.
  ValueId output = kNoValue;
  // From the first up to the one before the end: of the graph's nodes, the network's parameters and its
  // statistics.
  NodeId first_node = 0, end_node = 0;
  size_t first_parameter = 0, end_parameter = 0;
  size_t first_statistic = 0, end_statistic = 0;
};

// The layers of a network as they were built, those within a block before the block itself.
struct ModelTrace {
  std::vector<BuiltLayer> layers;
  std::map<ValueId, std::string> names;  // Of the layers that computed values; of the input.
};

// Where the random numbers of a training graph's layers come from, such that they do not depend on how a
// batch is dealt to replicas.
struct RandomSource {
  uint64_t seed = 0;         // The job's.
  ValueId step = kNoValue;   // int64 []: the steps taken before.
  int64_t first_sample = 0;  // The place in the whole batch of this graph's first sample.
};

// The samples of a training graph beside those that the other replicas' graphs compute at the same time.
struct BatchShare {
  int replicas = 1;
  int rank = 0;
  double share = 1;  // Of this graph's samples in the whole batch.
  // Why a layer cannot look at the whole batch; null where it can.
  const char* fault = nullptr;
};

// What a layer adds its nodes, parameters and statistics to.
struct LayerContext {
  Graph& graph;
  DType dtype;    // Of parameters and activations.
  bool training;  // Whether layers do what they do in training alone.
  std::vector<Parameter>& parameters;
  std::vector<Statistic>& statistics;
  RandomSource random = {};  // With `training`.
  BatchShare batch = {};     // With `training`.
  std::string prefix = "";   // Of the names of layers within a block: "<block>.".
  // Whether the layer of a whole name is not trained; none are where it is null.
  const std::function<bool(absl::string_view name)>* is_frozen = nullptr;
  bool frozen = false;          // Whether that is so of the layer that is being built.
  ModelTrace* trace = nullptr;  // Gets the layers; may be null.
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

// The rules of one kind of layer. A kind is a message in layer.proto, a file of this room and a row of
// FindLayerKind. Shapes are those of one sample; graph values have the batch as their first dimension. Paths
// of fields are relative to the v1::Layer ("conv2d.kernel[0]"). Immutable.
class LayerKind {
 public:
  virtual ~LayerKind() = default;

  // The field of v1::Layer that names it: "conv2d".
  virtual absl::string_view field() const = 0;
  // Sets the fields that have a default and are left out.
  virtual void FillDefaults(v1::Layer* /*layer*/) const {}
  // How many inputs it reads.
  virtual int least_inputs() const { return 1; }
  virtual int most_inputs() const { return 1; }
  // Names below its own by which it keeps parameters as a layer does: "<layer>.<name>.weight".
  virtual absl::Span<const absl::string_view> inner_names() const { return {}; }
  // Whether its input is tokens, int32, which only a model's input can be; others read numbers.
  virtual bool reads_tokens() const { return false; }

  // What follows takes layers with their defaults filled in.

  // What is wrong whatever the inputs are: INVALID_ARGUMENT with the fields at fault.
  virtual absl::Status Check(const v1::Layer& layer) const = 0;
  // The shape of its output. After Check. INVALID_ARGUMENT, with the field at fault, where it does not take
  // `inputs`.
  virtual absl::StatusOr<Shape> InferFrom(const v1::Layer& layer, absl::Span<const Shape> inputs) const = 0;
  // Appends the layer to the graph and returns its output. After InferFrom.
  virtual absl::StatusOr<ValueId> BuildFrom(const v1::Layer& layer, absl::Span<const ValueId> inputs,
                                            LayerContext& context) const = 0;
};

// A kind that reads one input.
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

// Null where the layer names no kind.
const LayerKind* FindLayerKind(v1::Layer::KindCase kind);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_LAYER_KIND_H_
