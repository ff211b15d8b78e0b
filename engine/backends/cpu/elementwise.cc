#include "engine/backends/cpu/elementwise.h"

#include <cstring>
#include <memory>
#include <utility>

#include "engine/backends/cpu/batch_norm.h"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/linear.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/normalize.h"

namespace tandem::cpu {
namespace {

// Adds a loop over the elements, with padding, of output 0 and of the inputs, in the layout of the first
// input. `loop(run, x, z, y, begin, end)`: z is the second input, or x again.
template <typename Loop>
absl::Status LowerLoop(Lowering& lowering, const Node& node, const Loop& loop) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Region x = home.region;
  Region z = x;
  std::vector<std::pair<int, int>> in_place = {{0, 0}};
  std::vector<Region> reads = {x};
  if (node.inputs.size() > 1) {
    TANDEM_ASSIGN_OR_RETURN(z, lowering.Get(node.inputs[1], home.layout));
    reads.push_back(z);
    in_place.push_back({0, 1});
  }
  const Region y = lowering.Define(node.outputs[0], home.layout);
  const int64_t elements = home.layout.elements();
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = std::move(reads),
                 .writes = {y},
                 .in_place = std::move(in_place),
                 .run = [=](const RunContext& run) {
                   run.team->For(elements, [&](int64_t begin, int64_t end) {
                     loop(*run.kernels, run.At<const float>(x), run.At<const float>(z), run.At<float>(y),
                          begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

// Returns whether a reader of the value wants it batch-blocked.
bool WantedBatchBlocked(const Lowering& lowering, ValueId value) {
  for (const NodeId id : lowering.uses().readers(value)) {
    const Node& node = lowering.graph().node(id);
    if (node.inputs[0] != value) continue;
    const absl::string_view kind = node.op->kind();
    if (kind == "conv2d") return TakesBatchBlocked(lowering, ProblemOfForward(lowering, node));
    if (kind == "linear") return LinearTakesBatchBlocked(lowering, lowering.shape(value));
    const bool keeps_layout = kind == "relu" || kind == "add" || kind == "scale" || kind == "reshape" ||
                              kind == "batch_norm" || kind == "batch_norm_inference" ||
                              kind == "max_pool2d" || kind == "average_pool2d";
    if (keeps_layout) return WantedBatchBlocked(lowering, node.outputs[0]);
  }
  return false;
}

// Scales a float64 number, such as the learning rate.
absl::Status LowerScaleOfNumber(Lowering& lowering, const Node& node) {
  if (lowering.shape(node.inputs[0]).rank() != 0) return CheckFloat32(lowering, node, node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  const Region y = lowering.Define(node.outputs[0], Layout::Plain(DType::kFloat64, Shape()));
  lowering.Emit({.name = "scale",
                 .reads = {x},
                 .writes = {y},
                 .run = [x, y, factor = static_cast<const ScaleOp&>(*node.op).factor](const RunContext& run) {
                   *run.At<double>(y) = factor * *run.At<const double>(x);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerRelu(Lowering& lowering, const Node& node) {
  return LowerLoop(lowering, node,
                   [](const Kernels& kernels, const float* x, const float*, float* y, int64_t begin,
                      int64_t end) { kernels.relu(x, y, begin, end); });
}

absl::Status LowerReluGrad(Lowering& lowering, const Node& node) {
  if (const BackwardGroup* group = lowering.fusions().Backward(node); group != nullptr) {
    return LowerReluGradSums(lowering, *group);
  }
  return LowerLoop(lowering, node,
                   [](const Kernels& kernels, const float* y, const float* dy, float* dx, int64_t begin,
                      int64_t end) { kernels.relu_grad(y, dy, dx, begin, end); });
}

absl::Status LowerAdd(Lowering& lowering, const Node& node) {
  return LowerLoop(lowering, node,
                   [](const Kernels& kernels, const float* a, const float* b, float* y, int64_t begin,
                      int64_t end) { kernels.add(a, b, y, begin, end); });
}

absl::Status LowerMultiply(Lowering& lowering, const Node& node) {
  return LowerLoop(lowering, node,
                   [](const Kernels&, const float* a, const float* b, float* y, int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) y[i] = a[i] * b[i];
                   });
}

absl::Status LowerScale(Lowering& lowering, const Node& node) {
  if (lowering.value(node.inputs[0]).dtype == DType::kFloat64) return LowerScaleOfNumber(lowering, node);
  const float factor = static_cast<float>(static_cast<const ScaleOp&>(*node.op).factor);
  return LowerLoop(lowering, node,
                   [factor](const Kernels& kernels, const float* x, const float*, float* y, int64_t begin,
                            int64_t end) { kernels.scale(x, factor, y, begin, end); });
}

absl::Status LowerDivide(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region divisor, lowering.GetPlain(node.inputs[1]));
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], home.layout);
  const int64_t elements = home.layout.elements();
  const auto factor = static_cast<float>(static_cast<const DivideOp&>(*node.op).factor);
  lowering.Emit({.name = "divide",
                 .reads = {x, divisor},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   const float by = *run.At<const float>(divisor);
                   run.team->For(elements, [&](int64_t begin, int64_t end) {
                     const float* from = run.At<const float>(x);
                     float* to = run.At<float>(y);
                     const float scale = by == 0 ? 0 : factor / by;
                     for (int64_t i = begin; i < end; ++i) to[i] = by == 0 ? 0 : scale * from[i];
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerReshape(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Shape& from = lowering.shape(node.inputs[0]);
  const Shape& to = lowering.shape(node.outputs[0]);
  const DType dtype = lowering.value(node.inputs[0]).dtype;
  const bool stays_blocked = home.layout.batch_blocked() && to.rank() > 0 && from[0] == to[0];
  const Layout layout = stays_blocked ? Layout::BatchBlocked(dtype, to) : Layout::Plain(dtype, to);
  Region region = home.region;
  if (!stays_blocked) {
    TANDEM_ASSIGN_OR_RETURN(region, lowering.GetPlain(node.inputs[0]));
  }
  // The result keeps the variable's value, even if a later node changes the variable.
  if (lowering.uses().ChangesAfter(node.inputs[0], node.id) &&
      lowering.buffers()[region.buffer].source == Buffer::Source::kVariable) {
    const Region copy = lowering.Define(node.outputs[0], layout);
    const int64_t bytes = layout.bytes();
    lowering.Emit({.name = "reshape", .reads = {region}, .writes = {copy}, .run = [=](const RunContext& run) {
                     std::memcpy(run.At<void>(copy), run.At<const void>(region), bytes);
                     return absl::OkStatus();
                   }});
    return absl::OkStatus();
  }
  lowering.Alias(node.outputs[0], {region, layout});
  return absl::OkStatus();
}

absl::Status LowerNormalize(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.outputs[0]));
  const bool bytes = lowering.value(node.inputs[0]).dtype == DType::kUInt8;
  if (!bytes) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  NormalizeSizes sizes;
  sizes.rows = shape.rank() == 0 ? 1 : shape[0];
  sizes.channels = shape.rank() < 2 ? 1 : shape[1];
  sizes.positions = sizes.rows * sizes.channels == 0 ? 0 : shape.elements() / (sizes.rows * sizes.channels);
  sizes.blocked = shape.rank() >= 2 && WantedBatchBlocked(lowering, node.outputs[0]);

  const auto& op = static_cast<const NormalizeOp&>(*node.op);
  std::vector<double> factors;
  std::vector<double> offsets;
  for (int64_t c = 0; c < sizes.channels; ++c) {
    const double mean = op.mean[op.mean.size() == 1 ? 0 : c];
    const double deviation = op.std[op.std.size() == 1 ? 0 : c];
    factors.push_back(op.scale / deviation);
    offsets.push_back(-mean / deviation);
  }
  const Layout layout =
      sizes.blocked ? Layout::BatchBlocked(DType::kFloat32, shape) : Layout::Plain(DType::kFloat32, shape);
  const Region y = lowering.Define(node.outputs[0], layout);
  const int64_t items = sizes.blocked ? (sizes.rows + kBlock - 1) / kBlock : sizes.rows;
  Step step = {.name = sizes.blocked ? "normalize batch-blocked" : "normalize", .reads = {x}, .writes = {y}};
  if (bytes) {
    step.run = [=, factors = std::vector<float>(factors.begin(), factors.end()),
                offsets = std::vector<float>(offsets.begin(), offsets.end())](const RunContext& run) {
      run.team->For(items, [&](int64_t begin, int64_t end) {
        run.kernels->normalize_bytes(sizes, run.At<const uint8_t>(x), factors.data(), offsets.data(),
                                     run.At<float>(y), begin, end);
      });
      return absl::OkStatus();
    };
  } else {
    step.run = [=](const RunContext& run) {
      run.team->For(items, [&](int64_t begin, int64_t end) {
        const ScopedDenormals denormals;
        run.kernels->normalize_floats(sizes, run.At<const float>(x), factors.data(), offsets.data(),
                                      run.At<float>(y), begin, end);
      });
      return absl::OkStatus();
    };
  }
  lowering.Emit(std::move(step));
  return absl::OkStatus();
}

}  // namespace tandem::cpu
