#ifndef TANDEM_ENGINE_LAYERS_LAYER_KIND_H_
#define TANDEM_ENGINE_LAYERS_LAYER_KIND_H_

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
};

// What a layer adds its nodes and parameters to.
struct LayerContext {
  Graph& graph;
  DType dtype;  // Of parameters and activations.
  std::vector<Parameter>& parameters;
};

// Declares a layer's parameter as a variable.
inline ValueId AddParameter(LayerContext& context, absl::string_view layer, absl::string_view name,
                            Shape shape, const v1::Initializer& initializer, Fans fans) {
  const std::string full_name = absl::StrCat(layer, ".", name);
  const ValueId value = context.graph.AddVariable(full_name, VariableKind::kParameter, context.dtype, shape);
  context.parameters.push_back({full_name, value, std::move(shape), initializer, fans});
  return value;
}

// The rules of one kind of layer. A kind is a message in model.proto, a file of this room and a row of
// FindLayerKind. Shapes are those of one sample; graph values have the batch as their first dimension. Paths
// of fields are relative to the v1::Layer ("conv2d.kernel[0]"). Immutable.
class LayerKind {
 public:
  virtual ~LayerKind() = default;

  // The field of v1::Layer that names it: "conv2d".
  virtual absl::string_view field() const = 0;
  // Sets the fields that have a default and are left out.
  virtual void FillDefaults(v1::Layer* /*layer*/) const {}

  // What follows takes layers with their defaults filled in.

  // What is wrong whatever the input is: INVALID_ARGUMENT with the fields at fault.
  virtual absl::Status Check(const v1::Layer& layer) const = 0;
  // The shape of its output. After Check. INVALID_ARGUMENT, with the field at fault, where it does not take
  // `input`.
  virtual absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const = 0;
  // Appends the layer to the graph and returns its output. After Infer.
  virtual absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input,
                                        LayerContext& context) const = 0;
};

// Null where the layer names no kind.
const LayerKind* FindLayerKind(v1::Layer::KindCase kind);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_LAYER_KIND_H_
