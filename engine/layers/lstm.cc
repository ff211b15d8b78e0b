#include "engine/layers/lstm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/reshape.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

constexpr int kMostLayers = 64;

// The outputs of a direction of a layer.
struct Direction {
  ValueId sequence = kNoValue;  // [batch, length, units]
  ValueId last = kNoValue;      // [batch, units]
};

// Returns the value as a part of a head, [batch, 1, length, units]. merge_heads joins the parts along the
// units.
absl::StatusOr<ValueId> AsPart(ValueId value, Graph& graph) {
  const Shape& shape = graph.value(value).shape;
  const int64_t length = shape.rank() == 3 ? shape[1] : 1;
  return graph.Add(std::make_shared<ReshapeOp>(Shape({shape[0], 1, length, shape[-1]})), {value});
}

class LstmLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "lstm"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::Lstm* lstm = layer->mutable_lstm();
    if (lstm->layers() == 0) lstm->set_layers(1);
    if (lstm->output() == v1::LSTM_OUTPUT_UNSPECIFIED) lstm->set_output(v1::LSTM_OUTPUT_SEQUENCE);
    if (!lstm->has_use_bias()) lstm->set_use_bias(true);
    v1::Initializer uniform;
    const double limit = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, lstm->units())));
    uniform.mutable_uniform()->set_low(-limit);
    uniform.mutable_uniform()->set_high(limit);
    FillInitializer(uniform, lstm->mutable_weight_initializer());
    FillInitializer(lstm->weight_initializer(), lstm->mutable_recurrent_initializer());
    FillInitializer(lstm->weight_initializer(), lstm->mutable_bias_initializer());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Lstm& lstm = layer.lstm();
    FieldViolations violations;
    CheckExtent("lstm.units", lstm.units(), 1, violations);
    if (lstm.layers() < 1 || lstm.layers() > kMostLayers) {
      violations.Add("lstm.layers",
                     absl::StrCat("is ", lstm.layers(), "; it must be from 1 to ", kMostLayers));
    }
    if (!v1::LstmOutput_IsValid(lstm.output())) {
      violations.Add("lstm.output",
                     absl::StrCat("is ", static_cast<int>(lstm.output()), "; give sequence or last"));
    }
    violations.AddAll("lstm.weight_initializer", CheckInitializer(lstm.weight_initializer()));
    violations.AddAll("lstm.recurrent_initializer", CheckInitializer(lstm.recurrent_initializer()));
    violations.AddAll("lstm.bias_initializer", CheckInitializer(lstm.bias_initializer()));
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(CheckVectors("lstm", input));
    const v1::Lstm& lstm = layer.lstm();
    const int64_t width = (lstm.bidirectional() ? 2 : 1) * lstm.units();
    return lstm.output() == v1::LSTM_OUTPUT_LAST ? Shape({width}) : Shape({input[0], width});
  }

  static absl::StatusOr<Direction> BuildDirection(const v1::Layer& layer, int depth, bool reverse,
                                                  ValueId input, LayerContext& context) {
    const v1::Lstm& lstm = layer.lstm();
    Graph& graph = context.graph;
    const Shape shape = graph.value(input).shape;
    const int64_t units = lstm.units();
    const int64_t gates = 4 * units;
    const std::string suffix = absl::StrCat("_l", depth, reverse ? "_reverse" : "");
    const auto parameter = [&](const char* name, Shape extents, const v1::Initializer& initializer,
                               int64_t fan_in) {
      const Fans fans{.in = static_cast<double>(fan_in), .out = static_cast<double>(gates)};
      return AddParameter(context, layer.name(), absl::StrCat(name, suffix), std::move(extents), initializer,
                          fans);
    };
    // In PyTorch's order.
    std::vector<ValueId> projection = {
        input, parameter("weight_ih", Shape({gates, shape[2]}), lstm.weight_initializer(), shape[2])};
    const ValueId recurrent =
        parameter("weight_hh", Shape({gates, units}), lstm.recurrent_initializer(), units);
    ValueId recurrent_bias = kNoValue;
    if (lstm.use_bias()) {
      projection.push_back(parameter("bias_ih", Shape({gates}), lstm.bias_initializer(), shape[2]));
      recurrent_bias = parameter("bias_hh", Shape({gates}), lstm.bias_initializer(), units);
    } else {
      recurrent_bias = graph.AddConstant(0, context.dtype, Shape({gates}));
    }
    TANDEM_ASSIGN_OR_RETURN(const ValueId projected,
                            graph.Add(std::make_shared<LinearOp>(), std::move(projection)));
    const ValueId zeros = graph.AddConstant(0, context.dtype, Shape({shape[0], units}));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                            graph.AddNode(std::make_shared<LstmOp>(reverse),
                                          {projected, zeros, zeros, recurrent, recurrent_bias}));
    return Direction{.sequence = outputs[0], .last = outputs[1]};
  }

  // Joins two values [..., units] to [..., 2 units].
  static absl::StatusOr<ValueId> Join(ValueId a, ValueId b, Graph& graph) {
    const Shape shape = graph.value(a).shape;
    TANDEM_ASSIGN_OR_RETURN(const ValueId first, AsPart(a, graph));
    TANDEM_ASSIGN_OR_RETURN(const ValueId second, AsPart(b, graph));
    TANDEM_ASSIGN_OR_RETURN(const ValueId joined,
                            graph.Add(std::make_shared<MergeHeadsOp>(), {first, second}));
    if (shape.rank() == 3) return joined;
    return graph.Add(std::make_shared<ReshapeOp>(Shape({shape[0], 2 * shape[1]})), {joined});
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::Lstm& lstm = layer.lstm();
    for (int depth = 0; depth < lstm.layers(); ++depth) {
      const bool gives_last = depth + 1 == lstm.layers() && lstm.output() == v1::LSTM_OUTPUT_LAST;
      TANDEM_ASSIGN_OR_RETURN(const Direction forward, BuildDirection(layer, depth, false, input, context));
      ValueId output = gives_last ? forward.last : forward.sequence;
      if (lstm.bidirectional()) {
        TANDEM_ASSIGN_OR_RETURN(const Direction backward, BuildDirection(layer, depth, true, input, context));
        TANDEM_ASSIGN_OR_RETURN(output,
                                Join(output, gives_last ? backward.last : backward.sequence, context.graph));
      }
      input = output;
    }
    return input;
  }
};

}  // namespace

const LayerKind& LstmKind() { return TheOnly<LstmLayerKind>(); }

}  // namespace tandem
