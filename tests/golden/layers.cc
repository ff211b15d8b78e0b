#include "tests/golden/layers.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/channel_bias.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/group_norm.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/pad.h"
#include "engine/graph/ops/pooling.h"
#include "tests/golden/activations.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/sequences.h"
#include "tests/golden/shaping.h"

namespace tandem {
namespace {

using nlohmann::json;

absl::Status NotOffered(const std::string& what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not offered yet"));
}

// `values` with `weights` behind them.
std::vector<ValueId> Join(absl::Span<const ValueId> values, absl::Span<const ValueId> weights) {
  std::vector<ValueId> joined(values.begin(), values.end());
  joined.insert(joined.end(), weights.begin(), weights.end());
  return joined;
}

// Returns the padding of a convolution: numbers, or "valid" or "same". `rest` receives the difference between
// the padding below or right and the padding above or left.
Size2d ConvolutionPadding(Attributes& attributes, const json& attrs, Size2d kernel, Size2d dilation,
                          Size2d& rest) {
  const auto found = attrs.find("padding");
  if (found == attrs.end() || !found->is_string()) return attributes.Pair("padding", {0, 0});
  if (attributes.Text("padding", "") == "valid") return Size2d{0, 0};
  const Size2d both = {dilation.h * (kernel.h - 1), dilation.w * (kernel.w - 1)};
  rest = {both.h % 2, both.w % 2};
  return Size2d{both.h / 2, both.w / 2};
}

absl::StatusOr<ValueId> AddConvolution(Graph& graph, Attributes& attributes, const json& attrs,
                                       absl::Span<const ValueId> inputs, absl::Span<const ValueId> weights) {
  // The weight says these too.
  for (const char* key : {"in_channels", "out_channels", "kernel_size", "bias"}) attributes.Ignore(key);
  if (attributes.Text("padding_mode", "zeros") != "zeros") return NotOffered("padding by other than zeros");
  const Shape& weight = graph.value(weights[0]).shape;
  if (weight.rank() != 4) return absl::InvalidArgumentError("the weight must have 4 dimensions");
  Conv2dGeometry geometry;
  geometry.stride = attributes.Pair("stride", {1, 1});
  geometry.dilation = attributes.Pair("dilation", {1, 1});
  geometry.groups = attributes.Whole("groups", 1);
  Size2d rest = {0, 0};
  geometry.padding = ConvolutionPadding(attributes, attrs, {weight[2], weight[3]}, geometry.dilation, rest);
  std::vector<ValueId> all = Join(inputs, weights);
  if (rest != Size2d{0, 0}) {
    TANDEM_ASSIGN_OR_RETURN(all[0], graph.Add(std::make_shared<Pad2dOp>(Margins{.after = rest}), {all[0]}));
  }
  return graph.Add(std::make_shared<Conv2dOp>(geometry), std::move(all));
}

// Weights: IOHW, and an optional bias.
absl::StatusOr<ValueId> AddConvTranspose(Graph& graph, Attributes& attributes, ValueId input,
                                         absl::Span<const ValueId> weights) {
  for (const char* key : {"in_channels", "out_channels", "kernel_size", "bias"}) attributes.Ignore(key);
  if (attributes.Text("padding_mode", "zeros") != "zeros") return NotOffered("padding by other than zeros");
  const Shape x = graph.value(input).shape;
  const Shape weight = graph.value(weights[0]).shape;
  if (x.rank() != 4 || weight.rank() != 4) {
    return absl::InvalidArgumentError("the input and the weight must have 4 dimensions");
  }
  Conv2dGeometry g;
  g.stride = attributes.Pair("stride", {1, 1});
  g.padding = attributes.Pair("padding", {0, 0});
  g.dilation = attributes.Pair("dilation", {1, 1});
  g.groups = attributes.Whole("groups", 1);
  const Size2d extra = attributes.Pair("output_padding", {0, 0});
  if (extra.h >= g.stride.h || extra.w >= g.stride.w) return NotOffered("output_padding beyond the stride");
  const Shape y({x[0], weight[1] * g.groups,
                 (x[2] - 1) * g.stride.h - 2 * g.padding.h + g.dilation.h * (weight[2] - 1) + extra.h + 1,
                 (x[3] - 1) * g.stride.w - 2 * g.padding.w + g.dilation.w * (weight[3] - 1) + extra.w + 1});
  TANDEM_ASSIGN_OR_RETURN(const ValueId output,
                          graph.Add(std::make_shared<Conv2dGradInputOp>(g, y), {input, weights[0]}));
  if (weights.size() == 1) return output;
  return graph.Add(std::make_shared<ChannelBiasOp>(), {output, weights[1]});
}

absl::StatusOr<PoolGeometry> ReadPooling(const Graph& graph, Attributes& attributes, ValueId input) {
  const Shape& x = graph.value(input).shape;
  if (x.rank() != 4) return absl::InvalidArgumentError("the input must have 4 dimensions");
  if (!attributes.Has("kernel_size")) return absl::InvalidArgumentError("kernel_size is missing");
  PoolGeometry geometry;
  geometry.size = attributes.Pair("kernel_size", {1, 1});
  geometry.stride = attributes.Pair("stride", geometry.size);
  geometry.padding = attributes.Pair("padding", {0, 0});
  geometry.ceil_mode = attributes.Flag("ceil_mode", false);
  return geometry;
}

absl::StatusOr<ValueId> AddMaxPooling(Graph& graph, Attributes& attributes, ValueId input) {
  TANDEM_ASSIGN_OR_RETURN(const PoolGeometry geometry, ReadPooling(graph, attributes, input));
  if (attributes.Pair("dilation", {1, 1}) != Size2d{1, 1}) return NotOffered("dilation of max_pool2d");
  attributes.Ignore("return_indices");
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          graph.AddNode(std::make_shared<MaxPool2dOp>(geometry), {input}));
  return outputs[0];
}

absl::StatusOr<ValueId> AddAveragePooling(Graph& graph, Attributes& attributes, ValueId input) {
  TANDEM_ASSIGN_OR_RETURN(const PoolGeometry geometry, ReadPooling(graph, attributes, input));
  if (attributes.Has("divisor_override")) return NotOffered("divisor_override");
  attributes.Ignore("divisor_override");
  return graph.Add(std::make_shared<AveragePool2dOp>(geometry, attributes.Flag("count_include_pad", true)),
                   {input});
}

absl::StatusOr<ValueId> AddGlobalAveragePooling(Graph& graph, ValueId input) {
  const Shape& x = graph.value(input).shape;
  if (x.rank() != 4) return absl::InvalidArgumentError("the input must have 4 dimensions");
  return graph.Add(std::make_shared<AveragePool2dOp>(PoolGeometry{.size = {x[2], x[3]}}, true), {input});
}

absl::StatusOr<ValueId> AddGlobalMaxPooling(Graph& graph, ValueId input) {
  const Shape x = graph.value(input).shape;
  if (x.rank() != 4) return absl::InvalidArgumentError("the input must have 4 dimensions");
  for (const Size2d size : {Size2d{1, x[3]}, Size2d{x[2], 1}}) {
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(std::make_shared<MaxPool2dOp>(PoolGeometry{.size = size}), {input}));
    input = outputs[0];
  }
  return input;
}

// Weights: weight and bias if the layer is affine. Instance normalisation has a group for each channel.
absl::StatusOr<ValueId> AddGroupNorm(Graph& graph, const std::string& type, Attributes& attributes,
                                     ValueId input, absl::Span<const ValueId> weights) {
  for (const char* key : {"num_channels", "num_features", "affine"}) attributes.Ignore(key);
  const Shape shape = graph.value(input).shape;
  if (shape.rank() < 2) return absl::InvalidArgumentError("the input must have at least 2 dimensions");
  if (attributes.Flag("track_running_stats", false)) return NotOffered("track_running_stats");
  std::vector<ValueId> all = Join({input}, weights);
  if (all.size() == 1) {
    const DType dtype = graph.value(input).dtype;
    all.push_back(graph.AddConstant(1, dtype, Shape({shape[1]})));
    all.push_back(graph.AddConstant(0, dtype, Shape({shape[1]})));
  }
  const int64_t groups = type == "group_norm" ? attributes.Whole("num_groups", 1) : shape[1];
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      graph.AddNode(std::make_shared<GroupNormOp>(groups, attributes.Number("eps", 1e-5)), std::move(all)));
  return outputs[0];
}

// Weights: weight and bias if the layer is affine, then the running mean and variance. Trains by default.
absl::StatusOr<ValueId> AddBatchNorm(Graph& graph, Attributes& attributes, ValueId input,
                                     absl::Span<const ValueId> weights) {
  attributes.Ignore("num_features");
  if (!attributes.Flag("track_running_stats", true)) return NotOffered("track_running_stats=false");
  const bool affine = attributes.Flag("affine", true);
  const Shape& shape = graph.value(input).shape;
  if (shape.rank() < 2) return absl::InvalidArgumentError("the input must have at least 2 dimensions");
  std::vector<ValueId> inputs = {input};
  if (!affine) {
    const DType dtype = graph.value(input).dtype;
    inputs.push_back(graph.AddConstant(1, dtype, Shape({shape[1]})));
    inputs.push_back(graph.AddConstant(0, dtype, Shape({shape[1]})));
  }
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const double momentum = attributes.Number("momentum", 0.1);
  const double epsilon = attributes.Number("eps", 1e-5);
  if (!attributes.Flag("training", true)) {
    return graph.Add(std::make_shared<BatchNormInferenceOp>(epsilon), std::move(inputs));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          graph.AddNode(std::make_shared<BatchNormOp>(momentum, epsilon), std::move(inputs)));
  return outputs[0];
}

// The features from `first_input` on become a vector by the weight [dimension, features]. Others stay.
absl::StatusOr<ValueId> AddEmbedCategories(Graph& graph, Attributes& attributes, ValueId input,
                                           ValueId weight) {
  const int64_t first = attributes.Whole("first_input", 1);
  const int64_t features = graph.value(weight).shape[1];
  const std::vector<int64_t> sizes = {first, features, graph.value(input).shape[1] - first - features};
  TANDEM_ASSIGN_OR_RETURN(std::vector<ValueId> parts,
                          graph.AddNode(std::make_shared<SplitOp>(1, sizes), {input}));
  TANDEM_ASSIGN_OR_RETURN(parts[1], graph.Add(std::make_shared<LinearOp>(), {parts[1], weight}));
  return graph.Add(std::make_shared<ConcatOp>(1), std::move(parts));
}

absl::StatusOr<ValueId> Dispatch(Graph& graph, const std::string& type, Attributes& attributes,
                                 const json& attrs, absl::Span<const ValueId> inputs,
                                 absl::Span<const ValueId> weights) {
  if (type == "conv2d") return AddConvolution(graph, attributes, attrs, inputs, weights);
  if (type == "linear") {
    for (const char* key : {"in_features", "out_features", "bias"}) attributes.Ignore(key);
    return graph.Add(std::make_shared<LinearOp>(), Join(inputs, weights));
  }
  if (type == "batch_norm2d" || type == "batch_norm1d") {
    return AddBatchNorm(graph, attributes, inputs[0], weights);
  }
  if (type == "embed_categories") return AddEmbedCategories(graph, attributes, inputs[0], weights[0]);
  if (type == "max_pool2d") return AddMaxPooling(graph, attributes, inputs[0]);
  if (type == "avg_pool2d") return AddAveragePooling(graph, attributes, inputs[0]);
  if (type == "global_avg_pool2d") return AddGlobalAveragePooling(graph, inputs[0]);
  if (type == "global_max_pool2d") return AddGlobalMaxPooling(graph, inputs[0]);
  if (type == "conv_transpose2d") return AddConvTranspose(graph, attributes, inputs[0], weights);
  if (type == "group_norm" || type == "instance_norm" || type == "instance_norm2d") {
    return AddGroupNorm(graph, type, attributes, inputs[0], weights);
  }
  TANDEM_ASSIGN_OR_RETURN(const ValueId activation, AddGoldenActivation(graph, type, attributes, inputs[0]));
  if (activation != kNoValue) return activation;
  TANDEM_ASSIGN_OR_RETURN(const ValueId shaped, AddGoldenShaping(graph, type, attributes, attrs, inputs));
  if (shaped != kNoValue) return shaped;
  return NotOffered(absl::StrCat("operation ", type));
}

}  // namespace

absl::StatusOr<ValueId> AddOperation(Graph& graph, const json& attrs, absl::Span<const ValueId> inputs,
                                     absl::Span<const ValueId> weights,
                                     std::map<std::string, ValueId>* others) {
  Attributes attributes(attrs);
  // Every layer of a network has these settings.
  for (const char* key : {"name", "inputs", "weights"}) attributes.Ignore(key);
  const std::string type = attributes.Text("type", "");
  if (inputs.empty()) return absl::InvalidArgumentError(absl::StrCat(type, " has no input"));
  const bool weighted =
      type == "conv2d" || type == "conv_transpose2d" || type == "linear" || type == "embed_categories";
  if (weighted && weights.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(type, " has no weight"));
  }
  TANDEM_ASSIGN_OR_RETURN(ValueId output,
                          AddGoldenSequence(graph, type, attributes, attrs, inputs, weights, others));
  if (output == kNoValue) {
    TANDEM_ASSIGN_OR_RETURN(output, Dispatch(graph, type, attributes, attrs, inputs, weights));
  }
  TANDEM_RETURN_IF_ERROR(attributes.Finish());
  return output;
}

}  // namespace tandem
