#include "engine/onnx/onnx_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/group_norm.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/layer_norm.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pad.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/positions.h"
#include "engine/graph/ops/softmax.h"
#include "engine/graph/ops/upsample.h"

namespace tandem {
namespace {

using Extents = std::vector<int64_t>;

template <typename T>
const T& OpOf(const OnnxSource& source) {
  return static_cast<const T&>(*source.node.op);
}

// Returns the extents for Reshape to `shape`, whose first dimension has any extent.
Extents AnyBatch(const Shape& shape) {
  Extents extents(shape.extents().begin(), shape.extents().end());
  if (!extents.empty()) extents[0] = -1;
  return extents;
}

// Returns {channels, 1, 1, ...}, which broadcasts over x [N, C, ...] of `rank`.
Extents OverPositions(int64_t channels, int rank) {
  Extents extents(rank - 1, 1);
  extents[0] = channels;
  return extents;
}

std::string Reshape(const std::string& x, const Extents& extents, OnnxGraph& onnx,
                    const std::string& output = "") {
  return onnx.Add("Reshape", {x, onnx.Integers(extents)}, {}, output);
}

std::string Transpose(const std::string& x, Extents order, OnnxGraph& onnx, const std::string& output = "") {
  return onnx.Add("Transpose", {x}, {{"perm", std::move(order)}}, output);
}

// Appends nodes with a name alone and a single output.
template <const char* kType>
absl::Status WriteAs(const OnnxSource& source, OnnxGraph& onnx) {
  std::vector<std::string> inputs;
  for (int i = 0; i < source.inputs(); ++i) inputs.push_back(source.input(i));
  onnx.Add(kType, std::move(inputs), {}, source.output());
  return absl::OkStatus();
}
constexpr char kRelu[] = "Relu";
constexpr char kAdd[] = "Add";
constexpr char kMul[] = "Mul";
constexpr char kGather[] = "Gather";

absl::Status WriteActivation(const OnnxSource& source, OnnxGraph& onnx) {
  const ActivationRule& rule = OpOf<ActivationOp>(source).rule;
  const std::string& x = source.input(0);
  const std::string& y = source.output();
  const auto alpha = static_cast<float>(rule.alpha);
  // Appends y = x factor.
  const auto times = [&](const std::string& factor) { onnx.Add("Mul", {x, factor}, {}, y); };
  // Returns half of 1 + `value`.
  const auto half_above = [&](const std::string& value) {
    return onnx.Add("Mul", {onnx.Add("Add", {value, onnx.Scalar(1)}), onnx.Scalar(0.5)});
  };
  switch (rule.function) {
    case ActivationFunction::kLeakyRelu:
      onnx.Add("LeakyRelu", {x}, {{"alpha", alpha}}, y);
      break;
    case ActivationFunction::kElu:
      onnx.Add("Elu", {x}, {{"alpha", alpha}}, y);
      break;
    case ActivationFunction::kGelu:
      times(half_above(onnx.Add("Erf", {onnx.Add("Mul", {x, onnx.Scalar(std::sqrt(0.5))})})));
      break;
    case ActivationFunction::kGeluTanh: {
      const std::string square = onnx.Add("Mul", {x, x});
      const std::string factor =
          onnx.Add("Add", {onnx.Add("Mul", {square, onnx.Scalar(0.044715)}), onnx.Scalar(1)});
      const std::string inner =
          onnx.Add("Mul", {onnx.Add("Mul", {x, factor}), onnx.Scalar(std::sqrt(2 / M_PI))});
      times(half_above(onnx.Add("Tanh", {inner})));
      break;
    }
    case ActivationFunction::kSigmoid:
      onnx.Add("Sigmoid", {x}, {}, y);
      break;
    case ActivationFunction::kTanh:
      onnx.Add("Tanh", {x}, {}, y);
      break;
    case ActivationFunction::kSilu:
      times(onnx.Add("Sigmoid", {x}));
      break;
    case ActivationFunction::kSoftplus: {
      const std::string scaled = onnx.Add("Mul", {x, onnx.Scalar(rule.alpha)});
      const std::string soft = onnx.Add("Mul", {onnx.Add("Softplus", {scaled}), onnx.Scalar(1 / rule.alpha)});
      onnx.Add("Where", {onnx.Add("Greater", {scaled, onnx.Scalar(rule.threshold)}), x, soft}, {}, y);
      break;
    }
    case ActivationFunction::kHardSwish:
      onnx.Add("HardSwish", {x}, {}, y);
      break;
    case ActivationFunction::kSelu:
      onnx.Add("Selu", {x},
               {{"alpha", static_cast<float>(kSeluAlpha)}, {"gamma", static_cast<float>(kSeluScale)}}, y);
      break;
  }
  return absl::OkStatus();
}

absl::Status WriteAttentionSoftmax(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<AttentionSoftmaxOp>(source);
  std::string scores = onnx.Add("Mul", {source.input(0), onnx.Scalar(op.scale)});
  if (op.causal) {
    const int64_t queries = source.input_shape()[-2], keys = source.input_shape()[-1];
    Tensor mask(DType::kFloat32, Shape({queries, keys}));
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = q + 1; k < keys; ++k) {
        mask.data<float>()[q * keys + k] = -std::numeric_limits<float>::infinity();
      }
    }
    scores = onnx.Add("Add", {scores, onnx.Floats(mask)});
  }
  onnx.Add("Softmax", {scores}, {{"axis", int64_t{-1}}}, source.output());
  return absl::OkStatus();
}

absl::Status WriteBatchNorm(const OnnxSource& source, OnnxGraph& onnx) {
  onnx.Add("BatchNormalization",
           {source.input(0), source.input(1), source.input(2), source.input(3), source.input(4)},
           {{"epsilon", static_cast<float>(OpOf<BatchNormInferenceOp>(source).epsilon)}}, source.output());
  return absl::OkStatus();
}

absl::Status WriteChannelBias(const OnnxSource& source, OnnxGraph& onnx) {
  const Shape& shape = source.input_shape();
  const std::string bias = Reshape(source.input(1), OverPositions(shape[1], shape.rank()), onnx);
  onnx.Add("Add", {source.input(0), bias}, {}, source.output());
  return absl::OkStatus();
}

absl::Status WriteConcat(const OnnxSource& source, OnnxGraph& onnx) {
  std::vector<std::string> inputs;
  for (int i = 0; i < source.inputs(); ++i) inputs.push_back(source.input(i));
  onnx.Add("Concat", std::move(inputs), {{"axis", int64_t{OpOf<ConcatOp>(source).axis}}}, source.output());
  return absl::OkStatus();
}

absl::Status WriteSplit(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<SplitOp>(source);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < source.node.outputs.size(); ++i)
    outputs.push_back(source.output(static_cast<int>(i)));
  onnx.AddAll("Split", {source.input(0), onnx.Integers(op.sizes)}, {{"axis", int64_t{op.axis}}}, outputs);
  return absl::OkStatus();
}

// Returns the attributes that convolutions have in common. `kernel` is [O, C, KH, KW].
std::vector<OnnxAttribute> ConvolutionAttributes(const Conv2dGeometry& geometry, const Shape& kernel) {
  return {{"kernel_shape", Extents{kernel[2], kernel[3]}},
          {"strides", Extents{geometry.stride.h, geometry.stride.w}},
          {"pads", Extents{geometry.padding.h, geometry.padding.w, geometry.padding.h, geometry.padding.w}},
          {"dilations", Extents{geometry.dilation.h, geometry.dilation.w}},
          {"group", geometry.groups}};
}

absl::Status WriteConvolution(const OnnxSource& source, OnnxGraph& onnx) {
  std::vector<std::string> inputs = {source.input(0), source.input(1)};
  if (source.inputs() > 2) inputs.push_back(source.input(2));
  onnx.Add("Conv", std::move(inputs),
           ConvolutionAttributes(OpOf<Conv2dOp>(source).geometry, source.input_shape(1)), source.output());
  return absl::OkStatus();
}

absl::Status WriteTransposedConvolution(const OnnxSource& source, OnnxGraph& onnx) {
  const Conv2dGeometry& geometry = OpOf<Conv2dGradInputOp>(source).geometry;
  const Shape &x = source.input_shape(0), &kernel = source.input_shape(1), &y = source.output_shape();
  std::vector<OnnxAttribute> attributes = ConvolutionAttributes(geometry, kernel);
  // The rows and columns of y after the last whole window.
  const auto rest = [](int64_t image, int64_t windows, int64_t size, int64_t stride, int64_t padding,
                       int64_t dilation) {
    return image + 2 * padding - dilation * (size - 1) - 1 - (windows - 1) * stride;
  };
  attributes.emplace_back(
      "output_padding",
      Extents{rest(y[2], x[2], kernel[2], geometry.stride.h, geometry.padding.h, geometry.dilation.h),
              rest(y[3], x[3], kernel[3], geometry.stride.w, geometry.padding.w, geometry.dilation.w)});
  onnx.Add("ConvTranspose", {source.input(0), source.input(1)}, attributes, source.output());
  return absl::OkStatus();
}

absl::Status WriteGroupNorm(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<GroupNormOp>(source);
  const Shape& shape = source.input_shape();
  Tensor ones(DType::kFloat32, Shape({op.groups}));
  std::fill(ones.data<float>().begin(), ones.data<float>().end(), 1.0F);
  const std::string grouped = Reshape(source.input(0), {0, op.groups, -1}, onnx);
  const std::string normal =
      onnx.Add("InstanceNormalization",
               {grouped, onnx.Floats(ones), onnx.Floats(Tensor(DType::kFloat32, Shape({op.groups})))},
               {{"epsilon", static_cast<float>(op.epsilon)}});
  const Extents each = OverPositions(shape[1], shape.rank());
  const std::string scaled =
      onnx.Add("Mul", {Reshape(normal, AnyBatch(shape), onnx), Reshape(source.input(1), each, onnx)});
  onnx.Add("Add", {scaled, Reshape(source.input(2), each, onnx)}, {}, source.output());
  return absl::OkStatus();
}

absl::Status WriteSplitHeads(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<SplitHeadsOp>(source);
  const Shape& y = source.output_shape();  // [N, H, L, D]
  std::vector<std::string> parts = {source.input(0)};
  if (op.parts > 1) {
    parts.clear();
    for (int64_t i = 0; i < op.parts; ++i) parts.push_back(onnx.NewName());
    const Extents sizes(op.parts, y[1] * y[3]);
    onnx.AddAll("Split", {source.input(0), onnx.Integers(sizes)}, {{"axis", int64_t{2}}}, parts);
  }
  for (int64_t i = 0; i < op.parts; ++i) {
    const std::string heads = Reshape(parts[i], {-1, y[2], y[1], y[3]}, onnx);
    Transpose(heads, {0, 2, 1, 3}, onnx, source.output(static_cast<int>(i)));
  }
  return absl::OkStatus();
}

absl::Status WriteMergeHeads(const OnnxSource& source, OnnxGraph& onnx) {
  const Shape& x = source.input_shape();  // [N, H, L, D]
  std::vector<std::string> parts;
  for (int i = 0; i < source.inputs(); ++i) {
    parts.push_back(Reshape(Transpose(source.input(i), {0, 2, 1, 3}, onnx), {-1, x[2], x[1] * x[3]}, onnx));
  }
  onnx.Add("Concat", std::move(parts), {{"axis", int64_t{2}}}, source.output());
  return absl::OkStatus();
}

absl::Status WriteLayerNorm(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<LayerNormOp>(source);
  onnx.Add("LayerNormalization", {source.input(0), source.input(1), source.input(2)},
           {{"axis", int64_t{-op.dimensions}}, {"epsilon", static_cast<float>(op.epsilon)}}, source.output());
  return absl::OkStatus();
}

absl::Status WriteLinear(const OnnxSource& source, OnnxGraph& onnx) {
  const bool has_bias = source.inputs() > 2;
  if (source.input_shape().rank() == 2) {
    std::vector<std::string> inputs = {source.input(0), source.input(1)};
    if (has_bias) inputs.push_back(source.input(2));
    onnx.Add("Gemm", std::move(inputs), {{"transB", int64_t{1}}}, source.output());
    return absl::OkStatus();
  }
  const std::string weight = Transpose(source.input(1), {1, 0}, onnx);
  const std::string product =
      onnx.Add("MatMul", {source.input(0), weight}, {}, has_bias ? "" : source.output());
  if (has_bias) onnx.Add("Add", {product, source.input(2)}, {}, source.output());
  return absl::OkStatus();
}

// Returns the gates i, f, g, o along the first dimension in ONNX's order: i, o, f, g.
std::string InOnnxOrder(const std::string& gates, int64_t units, OnnxGraph& onnx) {
  std::vector<std::string> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(onnx.NewName());
  onnx.AddAll("Split", {gates, onnx.Integers(Extents(4, units))}, {{"axis", int64_t{0}}}, parts);
  return onnx.Add("Concat", {parts[0], parts[3], parts[1], parts[2]}, {{"axis", int64_t{0}}});
}

absl::Status WriteLstm(const OnnxSource& source, OnnxGraph& onnx) {
  const Node& projection = source.graph.node(source.graph.value(source.node.inputs[0]).producer);
  const int64_t units = source.input_shape(3)[1];
  for (const int state : {1, 2}) {
    const Value& begin = source.graph.value(source.node.inputs[state]);
    if (begin.role != ValueRole::kConstant || begin.constant != 0) {
      return absl::UnimplementedError("cannot export an lstm that does not begin with zeros");
    }
  }
  const std::string one = onnx.Integers({0});
  // Returns a weight or a bias of the only direction.
  const auto of_direction = [&](const std::string& gates) { return onnx.Add("Unsqueeze", {gates, one}); };
  const auto in_order = [&](ValueId gates) {
    const Value& value = source.graph.value(gates);
    if (value.role != ValueRole::kConstant) return InOnnxOrder(source.names[gates], units, onnx);
    return onnx.Floats(Tensor(DType::kFloat32, value.shape));  // A bias of zeros.
  };
  const std::string input_bias = projection.inputs.size() > 2
                                     ? in_order(projection.inputs[2])
                                     : onnx.Floats(Tensor(DType::kFloat32, Shape({4 * units})));
  const std::string bias =
      onnx.Add("Concat", {input_bias, in_order(source.node.inputs[4])}, {{"axis", int64_t{0}}});
  const std::string sequence = onnx.NewName(), last = onnx.NewName();
  onnx.AddAll("LSTM",
              {Transpose(source.names[projection.inputs[0]], {1, 0, 2}, onnx),
               of_direction(in_order(projection.inputs[1])), of_direction(in_order(source.node.inputs[3])),
               of_direction(bias)},
              {{"hidden_size", units}, {"direction", OpOf<LstmOp>(source).reverse ? "reverse" : "forward"}},
              {sequence, last});
  const std::string direction = onnx.Integers({1});
  Transpose(onnx.Add("Squeeze", {sequence, direction}), {1, 0, 2}, onnx, source.output(0));
  onnx.Add("Squeeze", {last, one}, {}, source.output(1));
  return absl::OkStatus();
}

absl::Status WriteMatmul(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<MatmulOp>(source);
  const auto matrices = [&](int i, bool transpose) {
    if (!transpose) return source.input(i);
    Extents order(source.input_shape(i).rank());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 2], order.back());
    return Transpose(source.input(i), std::move(order), onnx);
  };
  onnx.Add("MatMul", {matrices(0, op.transpose_a), matrices(1, op.transpose_b)}, {}, source.output());
  return absl::OkStatus();
}

// In float32, factor x - mean / std would lose the digits of samples that vary little around a large mean. So
// the nearest float32 of mean / scale is subtracted first, and a small rest is added last.
absl::Status WriteNormalize(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<NormalizeOp>(source);
  const int rank = source.input_shape().rank();
  const auto channels = static_cast<int64_t>(std::max(op.mean.size(), op.std.size()));
  Tensor center(DType::kFloat32, Shape(channels > 1 ? OverPositions(channels, rank) : Extents()));
  Tensor factor = center, rest = center;
  for (int64_t c = 0; c < channels; ++c) {
    const double std = op.std[op.std.size() == 1 ? 0 : c], mean = op.mean[op.mean.size() == 1 ? 0 : c];
    // A scale of 0, or near 0, makes all samples equal.
    const auto center_of = static_cast<float>(mean / op.scale);
    const float nearest = std::isfinite(center_of) ? center_of : 0;
    center.data<float>()[c] = nearest;
    factor.data<float>()[c] = static_cast<float>(op.scale / std);
    rest.data<float>()[c] = static_cast<float>((op.scale * nearest - mean) / std);
  }
  const std::string x = onnx.Add("Cast", {source.input(0)}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  const std::string difference = onnx.Add("Sub", {x, onnx.Floats(center)});
  const std::string scaled = onnx.Add("Mul", {difference, onnx.Floats(factor)});
  onnx.Add("Add", {scaled, onnx.Floats(rest)}, {}, source.output());
  return absl::OkStatus();
}

absl::Status WritePad(const OnnxSource& source, OnnxGraph& onnx) {
  const Margins& margins = OpOf<Pad2dOp>(source).margins;
  const std::string pads =
      onnx.Integers({0, 0, margins.before.h, margins.before.w, 0, 0, margins.after.h, margins.after.w});
  onnx.Add("Pad", {source.input(0), pads}, {}, source.output());
  return absl::OkStatus();
}

// Returns the rows or columns that the windows need after the image, which may be more than the padding: with
// ceil_mode the last window may be incomplete. At least `padding`.
int64_t PaddingAfter(int64_t image, int64_t windows, int64_t size, int64_t stride, int64_t padding) {
  return std::max(padding, (windows - 1) * stride + size - image - padding);
}

// Returns the attributes of a pooling of `x` to `y`, which are [N, C, H, W], with this padding before x.
std::vector<OnnxAttribute> PoolAttributes(const PoolGeometry& geometry, Size2d padding, Size2d after) {
  return {{"kernel_shape", Extents{geometry.size.h, geometry.size.w}},
          {"strides", Extents{geometry.stride.h, geometry.stride.w}},
          {"pads", Extents{padding.h, padding.w, after.h, after.w}}};
}

Size2d PoolPaddingAfter(const OnnxSource& source, const PoolGeometry& geometry) {
  const Shape &x = source.input_shape(), &y = source.output_shape();
  return {PaddingAfter(x[2], y[2], geometry.size.h, geometry.stride.h, geometry.padding.h),
          PaddingAfter(x[3], y[3], geometry.size.w, geometry.stride.w, geometry.padding.w)};
}

absl::Status WriteMaxPool(const OnnxSource& source, OnnxGraph& onnx) {
  const PoolGeometry& geometry = OpOf<MaxPool2dOp>(source).geometry;
  onnx.Add("MaxPool", {source.input(0)},
           PoolAttributes(geometry, geometry.padding, PoolPaddingAfter(source, geometry)), source.output());
  return absl::OkStatus();
}

absl::Status WriteAveragePool(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<AveragePool2dOp>(source);
  const PoolGeometry& geometry = op.geometry;
  Size2d before = geometry.padding, after = PoolPaddingAfter(source, geometry);
  std::string x = source.input(0);
  if (op.count_include_pad && before != Size2d{0, 0}) {
    // The padding counts, and rows after the padding do not: so the padding becomes a part of the image.
    x = onnx.Add("Pad", {x, onnx.Integers({0, 0, before.h, before.w, 0, 0, before.h, before.w})});
    after = {after.h - before.h, after.w - before.w};
    before = {0, 0};
  }
  onnx.Add("AveragePool", {x}, PoolAttributes(geometry, before, after), source.output());
  return absl::OkStatus();
}

absl::Status WriteSinusoids(const OnnxSource& source, OnnxGraph& onnx) {
  const int64_t length = source.input_shape()[1], dimension = source.input_shape()[2];
  Tensor table(DType::kFloat32, Shape({length, dimension}));
  for (int64_t i = 0; i < table.elements(); ++i) {
    table.data<float>()[i] = static_cast<float>(Sinusoid(i / dimension, i % dimension, dimension));
  }
  onnx.Add("Add", {source.input(0), onnx.Floats(table)}, {}, source.output());
  return absl::OkStatus();
}

absl::Status WriteReshape(const OnnxSource& source, OnnxGraph& onnx) {
  Reshape(source.input(0), AnyBatch(source.output_shape()), onnx, source.output());
  return absl::OkStatus();
}

absl::Status WriteScale(const OnnxSource& source, OnnxGraph& onnx) {
  onnx.Add("Mul", {source.input(0), onnx.Scalar(OpOf<ScaleOp>(source).factor)}, {}, source.output());
  return absl::OkStatus();
}

absl::Status WriteSoftmax(const OnnxSource& source, OnnxGraph& onnx) {
  const auto& op = OpOf<SoftmaxOp>(source);
  onnx.Add(op.log ? "LogSoftmax" : "Softmax", {source.input(0)}, {{"axis", int64_t{op.axis}}},
           source.output());
  return absl::OkStatus();
}

// Returns x resized along `axis`, 2 or 3. The taps are gathered, because Resize knows no scale that differs
// from the ratio of the sizes.
std::string Resample(const std::string& x, int64_t axis, const std::vector<UpsampleTap>& taps, bool blends,
                     OnnxGraph& onnx, const std::string& output = "") {
  Extents first, second;
  for (const UpsampleTap& tap : taps) {
    first.push_back(tap.first);
    second.push_back(tap.second);
  }
  const std::vector<OnnxAttribute> along = {{"axis", axis}};
  if (!blends) return onnx.Add("Gather", {x, onnx.Integers(first)}, along, output);
  const auto size = static_cast<int64_t>(taps.size());
  Tensor shares(DType::kFloat32, axis == 2 ? Shape({size, 1}) : Shape({size}));
  for (int64_t i = 0; i < size; ++i) shares.data<float>()[i] = static_cast<float>(taps[i].share);
  const std::string begin = onnx.Add("Gather", {x, onnx.Integers(first)}, along);
  const std::string end = onnx.Add("Gather", {x, onnx.Integers(second)}, along);
  const std::string step = onnx.Add("Mul", {onnx.Add("Sub", {end, begin}), onnx.Floats(shares)});
  return onnx.Add("Add", {begin, step}, {}, output);
}

absl::Status WriteUpsample(const OnnxSource& source, OnnxGraph& onnx) {
  const UpsampleRule& rule = OpOf<UpsampleOp>(source).rule;
  const Shape& x = source.input_shape();
  const bool blends = rule.mode == UpsampleMode::kBilinear;
  const std::string rows =
      Resample(source.input(0), 2,
               UpsampleTaps(rule.mode, rule.align_corners, x[2], rule.size.h, rule.scale_h), blends, onnx);
  Resample(rows, 3, UpsampleTaps(rule.mode, rule.align_corners, x[3], rule.size.w, rule.scale_w), blends,
           onnx, source.output());
  return absl::OkStatus();
}

using WriteOp = absl::Status (*)(const OnnxSource& source, OnnxGraph& onnx);

const absl::flat_hash_map<std::string, WriteOp>& Writers() {
  static const auto* const writers = new absl::flat_hash_map<std::string, WriteOp>({
      {"activation", &WriteActivation},
      {"add", &WriteAs<kAdd>},
      {"add_sinusoids", &WriteSinusoids},
      {"add_to_each", &WriteAs<kAdd>},
      {"attention_softmax", &WriteAttentionSoftmax},
      {"average_pool2d", &WriteAveragePool},
      {"batch_norm_inference", &WriteBatchNorm},
      {"channel_bias", &WriteChannelBias},
      {"concat", &WriteConcat},
      {"conv2d", &WriteConvolution},
      {"conv2d_grad_input", &WriteTransposedConvolution},
      {"gather_rows", &WriteAs<kGather>},
      {"group_norm", &WriteGroupNorm},
      {"layer_norm", &WriteLayerNorm},
      {"linear", &WriteLinear},
      {"lstm", &WriteLstm},
      {"matmul", &WriteMatmul},
      {"max_pool2d", &WriteMaxPool},
      {"merge_heads", &WriteMergeHeads},
      {"multiply", &WriteAs<kMul>},
      {"normalize", &WriteNormalize},
      {"pad2d", &WritePad},
      {"relu", &WriteAs<kRelu>},
      {"reshape", &WriteReshape},
      {"scale", &WriteScale},
      {"softmax", &WriteSoftmax},
      {"split", &WriteSplit},
      {"split_heads", &WriteSplitHeads},
      {"upsample", &WriteUpsample},
  });
  return *writers;
}

}  // namespace

bool IsWrittenWithConsumer(const Graph& graph, const Node& node) {
  if (node.op->kind() != "linear") return false;
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& other) {
    return other.op->kind() == "lstm" && other.inputs[0] == node.outputs[0];
  });
}

absl::Status WriteOnnxOp(const OnnxSource& source, OnnxGraph& onnx) {
  const auto writer = Writers().find(source.node.op->kind());
  if (writer == Writers().end()) {
    return absl::UnimplementedError(absl::StrCat("cannot export the model: the op ", source.node.op->kind(),
                                                 " is unknown to the export"));
  }
  return writer->second(source, onnx);
}

}  // namespace tandem
