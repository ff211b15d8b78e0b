#include "tests/golden/sequences.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/layer_norm.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/reshape.h"

namespace tandem {
namespace {

using nlohmann::json;

absl::Status NotOffered(const std::string& what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not offered yet"));
}

absl::StatusOr<ValueId> Reshaped(Graph& graph, ValueId value, Shape shape) {
  return graph.Add(std::make_shared<ReshapeOp>(std::move(shape)), {value});
}

absl::StatusOr<ValueId> AddEmbedding(Graph& graph, Attributes& attributes, absl::Span<const ValueId> inputs,
                                     absl::Span<const ValueId> weights) {
  for (const char* key : {"num_embeddings", "embedding_dim", "sparse"}) attributes.Ignore(key);
  if (attributes.Has("max_norm")) return NotOffered("max_norm");
  if (attributes.Flag("scale_grad_by_freq", false)) return NotOffered("scale_grad_by_freq");
  for (const char* key : {"max_norm", "norm_type"}) attributes.Ignore(key);
  if (weights.size() != 1 || graph.value(weights[0]).shape.rank() != 2) {
    return absl::InvalidArgumentError("an embedding has one weight of 2 dimensions");
  }
  const int64_t rows = graph.value(weights[0]).shape[0];
  int64_t padding = GatherRowsOp::kNoPadding;
  if (attributes.Has("padding_idx")) padding = attributes.Whole("padding_idx", 0);
  attributes.Ignore("padding_idx");
  // PyTorch counts negative ones from the end.
  if (attributes.Has("padding_idx") && padding < 0) padding += rows;
  return graph.Add(std::make_shared<GatherRowsOp>(padding), {weights[0], inputs[0]});
}

absl::StatusOr<ValueId> AddLayerNorm(Graph& graph, Attributes& attributes, ValueId input,
                                     absl::Span<const ValueId> weights) {
  for (const char* key : {"elementwise_affine", "bias"}) attributes.Ignore(key);
  std::vector<int64_t> extents;
  for (const double extent : attributes.Numbers("normalized_shape")) {
    extents.push_back(static_cast<int64_t>(extent));
  }
  const int dimensions = static_cast<int>(extents.size());
  const Shape normalized(std::move(extents));
  std::vector<ValueId> all = {input};
  all.insert(all.end(), weights.begin(), weights.end());
  while (all.size() < 3) {
    all.push_back(graph.AddConstant(all.size() == 1 ? 1 : 0, graph.value(input).dtype, normalized));
  }
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      graph.AddNode(std::make_shared<LayerNormOp>(dimensions, attributes.Number("eps", 1e-5)),
                    std::move(all)));
  return outputs[0];
}

absl::StatusOr<ValueId> AddAttention(Graph& graph, ValueId query, ValueId key, ValueId value, double scale,
                                     bool causal) {
  TANDEM_ASSIGN_OR_RETURN(const ValueId scores,
                          graph.Add(std::make_shared<MatmulOp>(false, true), {query, key}));
  TANDEM_ASSIGN_OR_RETURN(const ValueId weights,
                          graph.Add(std::make_shared<AttentionSoftmaxOp>(scale, causal), {scores}));
  return graph.Add(std::make_shared<MatmulOp>(), {weights, value});
}

double DefaultScale(int64_t head_size) { return 1 / std::sqrt(static_cast<double>(head_size)); }

absl::StatusOr<ValueId> AddScaledDotProduct(Graph& graph, Attributes& attributes,
                                            absl::Span<const ValueId> inputs) {
  if (inputs.size() != 3) return absl::InvalidArgumentError("attention needs query, key and value");
  if (attributes.Number("dropout_p", 0) != 0) return NotOffered("dropout_p");
  const double scale = attributes.Number("scale", DefaultScale(graph.value(inputs[0]).shape[-1]));
  return AddAttention(graph, inputs[0], inputs[1], inputs[2], scale, attributes.Flag("is_causal", false));
}

// The bias among `weights` that has `extent` elements.
std::vector<ValueId> WithBias(const Graph& graph, std::vector<ValueId> inputs,
                              absl::Span<const ValueId> weights, int64_t extent) {
  for (const ValueId weight : weights) {
    if (graph.value(weight).shape == Shape({extent})) inputs.push_back(weight);
  }
  return inputs;
}

// Weights: in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias; either bias may be missing.
absl::StatusOr<ValueId> AddSelfAttention(Graph& graph, Attributes& attributes, ValueId input,
                                         absl::Span<const ValueId> weights) {
  for (const char* key : {"embed_dim", "bias", "batch_first"}) attributes.Ignore(key);
  if (attributes.Number("dropout", 0) != 0) return NotOffered("dropout");
  std::vector<ValueId> matrices;
  for (const ValueId weight : weights) {
    if (graph.value(weight).shape.rank() == 2) matrices.push_back(weight);
  }
  if (matrices.size() != 2) return absl::InvalidArgumentError("attention has two weights of 2 dimensions");
  const int64_t width = graph.value(input).shape[-1];
  const int64_t heads = attributes.Whole("num_heads", 1);
  if (heads < 1) return absl::InvalidArgumentError("num_heads is below 1");
  TANDEM_ASSIGN_OR_RETURN(
      const ValueId projected,
      graph.Add(std::make_shared<LinearOp>(), WithBias(graph, {input, matrices[0]}, weights, 3 * width)));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> parts,
                          graph.AddNode(std::make_shared<SplitHeadsOp>(3, heads), {projected}));
  TANDEM_ASSIGN_OR_RETURN(const ValueId attended,
                          AddAttention(graph, parts[0], parts[1], parts[2], DefaultScale(width / heads),
                                       attributes.Flag("causal", attributes.Flag("is_causal", false))));
  TANDEM_ASSIGN_OR_RETURN(const ValueId joined, graph.Add(std::make_shared<MergeHeadsOp>(), {attended}));
  return graph.Add(std::make_shared<LinearOp>(), WithBias(graph, {joined, matrices[1]}, weights, width));
}

// [a, b, c] as [b, a, c].
absl::StatusOr<ValueId> Exchanged(Graph& graph, ValueId value) {
  const Shape shape = graph.value(value).shape;
  TANDEM_ASSIGN_OR_RETURN(const ValueId row,
                          Reshaped(graph, value, Shape({1, shape[0], shape[1] * shape[2]})));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> parts,
                          graph.AddNode(std::make_shared<SplitHeadsOp>(1, shape[1]), {row}));
  return Reshaped(graph, parts[0], Shape({shape[1], shape[0], shape[2]}));
}

// Values [..., w] side by side: [..., n w].
absl::StatusOr<ValueId> Joined(Graph& graph, std::vector<ValueId> values) {
  if (values.size() == 1) return values[0];
  const Shape shape = graph.value(values[0]).shape;
  for (ValueId& value : values) {
    TANDEM_ASSIGN_OR_RETURN(value,
                            Reshaped(graph, value, Shape({1, 1, shape.elements() / shape[-1], shape[-1]})));
  }
  const int64_t count = static_cast<int64_t>(values.size());
  TANDEM_ASSIGN_OR_RETURN(const ValueId joined,
                          graph.Add(std::make_shared<MergeHeadsOp>(), std::move(values)));
  std::vector<int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.back() *= count;
  return Reshaped(graph, joined, Shape(std::move(extents)));
}

// Splits a tensor of all states into states [N, H] of each layer and direction. A missing tensor gives zeros.
absl::StatusOr<std::vector<ValueId>> SplitStates(Graph& graph, absl::Span<const ValueId> given, size_t i,
                                                 int64_t count, const TensorType& state) {
  if (given.size() <= i) {
    return std::vector<ValueId>(count, graph.AddConstant(0, state.dtype, state.shape));
  }
  TANDEM_ASSIGN_OR_RETURN(const ValueId row,
                          Reshaped(graph, given[i], Shape({1, 1, count * state.shape.elements()})));
  TANDEM_ASSIGN_OR_RETURN(std::vector<ValueId> states,
                          graph.AddNode(std::make_shared<SplitHeadsOp>(count, 1), {row}));
  for (ValueId& value : states) {
    TANDEM_ASSIGN_OR_RETURN(value, Reshaped(graph, value, state.shape));
  }
  return states;
}

// All states [N, H] as one tensor, shaped as the initial ones were given.
absl::StatusOr<ValueId> JoinStates(Graph& graph, std::vector<ValueId> states, bool one_only) {
  const Shape shape = graph.value(states[0]).shape;
  const int64_t count = static_cast<int64_t>(states.size());
  if (one_only) return states[0];
  for (ValueId& state : states) {
    TANDEM_ASSIGN_OR_RETURN(state, Reshaped(graph, state, Shape({1, shape.elements()})));
  }
  TANDEM_ASSIGN_OR_RETURN(const ValueId joined, Joined(graph, std::move(states)));
  return Reshaped(graph, joined, Shape({count, shape[0], shape[1]}));
}

// The weights of a direction: weight_ih, weight_hh and, if present, bias_ih and bias_hh.
struct LstmWeights {
  ValueId input = kNoValue;
  ValueId recurrent = kNoValue;
  ValueId input_bias = kNoValue;
  ValueId recurrent_bias = kNoValue;
};

absl::StatusOr<std::vector<LstmWeights>> ReadLstmWeights(const Graph& graph,
                                                         absl::Span<const ValueId> weights) {
  std::vector<LstmWeights> all;
  for (size_t i = 0; i < weights.size();) {
    if (i + 1 >= weights.size() || graph.value(weights[i]).shape.rank() != 2) {
      return absl::InvalidArgumentError("the weights are not those of an LSTM");
    }
    LstmWeights direction = {.input = weights[i], .recurrent = weights[i + 1]};
    i += 2;
    if (i < weights.size() && graph.value(weights[i]).shape.rank() == 1) {
      if (i + 1 >= weights.size()) return absl::InvalidArgumentError("an LSTM has no bias or two");
      direction.input_bias = weights[i];
      direction.recurrent_bias = weights[i + 1];
      i += 2;
    }
    all.push_back(direction);
  }
  if (all.empty()) return absl::InvalidArgumentError("an LSTM has weights");
  return all;
}

// Adds a layer in one direction. Outputs are those of LstmOp.
absl::StatusOr<std::vector<ValueId>> AddDirection(Graph& graph, const LstmWeights& weights, bool reverse,
                                                  ValueId input, ValueId h0, ValueId c0) {
  std::vector<ValueId> projection = {input, weights.input};
  if (weights.input_bias != kNoValue) projection.push_back(weights.input_bias);
  TANDEM_ASSIGN_OR_RETURN(const ValueId projected,
                          graph.Add(std::make_shared<LinearOp>(), std::move(projection)));
  const Value weight = graph.value(weights.input);
  const ValueId bias = weights.recurrent_bias != kNoValue
                           ? weights.recurrent_bias
                           : graph.AddConstant(0, weight.dtype, Shape({weight.shape[0]}));
  return graph.AddNode(std::make_shared<LstmOp>(reverse), {projected, h0, c0, weights.recurrent, bias});
}

absl::Status CheckGateOrder(Attributes& attributes, const json& attrs) {
  attributes.Ignore("gate_order");
  const auto order = attrs.find("gate_order");
  if (order == attrs.end() || *order == json({"input", "forget", "cell", "output"})) return absl::OkStatus();
  return NotOffered(absl::StrCat("gate_order ", order->dump()));
}

// Inputs: the sequence and, unless they are zero, h0 and c0.
absl::StatusOr<ValueId> AddLstm(Graph& graph, Attributes& attributes, const json& attrs,
                                absl::Span<const ValueId> inputs, absl::Span<const ValueId> weights,
                                std::map<std::string, ValueId>* others) {
  for (const char* key : {"input_size", "hidden_size", "bias"}) attributes.Ignore(key);
  TANDEM_RETURN_IF_ERROR(CheckGateOrder(attributes, attrs));
  if (attributes.Number("dropout", 0) != 0) return NotOffered("dropout");
  if (attributes.Whole("proj_size", 0) != 0) return NotOffered("proj_size");
  const bool batch_first = attributes.Flag("batch_first", false);
  const int64_t directions = attributes.Flag("bidirectional", false) ? 2 : 1;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<LstmWeights> all, ReadLstmWeights(graph, weights));
  const int64_t count = static_cast<int64_t>(all.size());
  if (attributes.Whole("num_layers", count / directions) * directions != count) {
    return absl::InvalidArgumentError("there are not as many weights as layers and directions");
  }
  if (graph.value(inputs[0]).shape.rank() != 3) {
    return absl::InvalidArgumentError("the input must have 3 dimensions");
  }
  ValueId x = inputs[0];
  if (!batch_first) {
    TANDEM_ASSIGN_OR_RETURN(x, Exchanged(graph, x));
  }
  const TensorType state = {graph.value(x).dtype,
                            Shape({graph.value(x).shape[0], graph.value(all[0].recurrent).shape[1]})};
  const absl::Span<const ValueId> given = inputs.subspan(1);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> h0, SplitStates(graph, given, 0, count, state));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> c0, SplitStates(graph, given, 1, count, state));
  std::vector<ValueId> h_n;
  std::vector<ValueId> c_n;
  for (int64_t i = 0; i < count;) {
    std::vector<ValueId> sequences;
    for (int64_t direction = 0; direction < directions; ++direction, ++i) {
      TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                              AddDirection(graph, all[i], direction == 1, x, h0[i], c0[i]));
      sequences.push_back(outputs[0]);
      h_n.push_back(outputs[1]);
      c_n.push_back(outputs[2]);
    }
    TANDEM_ASSIGN_OR_RETURN(x, Joined(graph, std::move(sequences)));
  }
  if (others != nullptr) {
    const bool one_only = count == 1 && (given.empty() || graph.value(given[0]).shape.rank() == 2);
    TANDEM_ASSIGN_OR_RETURN((*others)["h_n"], JoinStates(graph, std::move(h_n), one_only));
    TANDEM_ASSIGN_OR_RETURN((*others)["c_n"], JoinStates(graph, std::move(c_n), one_only));
  }
  if (batch_first) return x;
  return Exchanged(graph, x);
}

}  // namespace

absl::StatusOr<ValueId> AddGoldenSequence(Graph& graph, const std::string& type, Attributes& attributes,
                                          const json& attrs, absl::Span<const ValueId> inputs,
                                          absl::Span<const ValueId> weights,
                                          std::map<std::string, ValueId>* others) {
  if (type == "embedding") return AddEmbedding(graph, attributes, inputs, weights);
  if (type == "layer_norm") return AddLayerNorm(graph, attributes, inputs[0], weights);
  if (type == "lstm") return AddLstm(graph, attributes, attrs, inputs, weights, others);
  if (type == "multi_head_attention" || type == "self_attention") {
    return AddSelfAttention(graph, attributes, inputs[0], weights);
  }
  if (type == "scaled_dot_product_attention") return AddScaledDotProduct(graph, attributes, inputs);
  return kNoValue;
}

}  // namespace tandem
