#include "engine/backends/cpu/linear.h"

#include <utility>

#include "dnnl.hpp"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/backends/cpu/products.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/linear.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

LinearSizes SizesOf(const Shape& x, const Shape& y) {
  return {.blocks = (x[0] + kBlock - 1) / kBlock, .inputs = x[-1], .outputs = y[-1]};
}

// Returns [..., last] as [rows, last].
Shape AsRows(const Shape& shape) { return Shape({shape.elements() / shape[-1], shape[-1]}); }

// The common part of oneDNN's three primitives: plain layouts. In bfloat16, factors are bfloat16. Results and
// tensors of parameters stay float32.
struct Problem {
  Shape x;  // As rows.
  Shape weight;
  Shape y;  // As rows.
  DType compute;
  dnnl::primitive_attr attributes;

  Problem(const Lowering& lowering, const Shape& x_shape, const Shape& weight_shape, const Shape& y_shape)
      : x(AsRows(x_shape)), weight(weight_shape), y(AsRows(y_shape)), compute(lowering.compute()) {
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  memory::desc Factor(const Shape& shape) const { return PlainDesc(compute, shape); }
  static memory::desc Float(const Shape& shape) { return PlainDesc(DType::kFloat32, shape); }

  dnnl::inner_product_forward::primitive_desc Forward(const memory::desc& y_desc, bool has_bias) const {
    const auto kind = dnnl::prop_kind::forward_training;
    if (has_bias) {
      return {
          {kind, Factor(x), Factor(weight), Float(Shape({weight[0]})), y_desc}, attributes, OneDnnEngine()};
    }
    return {{kind, Factor(x), Factor(weight), y_desc}, attributes, OneDnnEngine()};
  }
  // The backward primitives read only its shapes.
  dnnl::inner_product_forward::primitive_desc Hint() const { return Forward(Factor(y), false); }
};

// Returns a value in the type in which oneDNN multiplies it, in memory that stays.
absl::StatusOr<Region> GetFactor(Lowering& lowering, ValueId id) {
  return lowering.GetFixed(id, Layout::Plain(lowering.compute(), lowering.shape(id)));
}

absl::Status LowerOneDnnForward(Lowering& lowering, const Node& node) {
  const Shape& weight_shape = lowering.shape(node.inputs[1]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  const bool has_bias = node.inputs.size() == 3;
  const Problem problem(lowering, lowering.shape(node.inputs[0]), weight_shape, y_shape);
  const auto desc = problem.Forward(Problem::Float(problem.y), has_bias);
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, node.inputs[1]));
  std::vector<OneDnnArgument> reads = {{DNNL_ARG_SRC, desc.src_desc(), x},
                                       {DNNL_ARG_WEIGHTS, desc.weights_desc(), weight}};
  if (has_bias) {
    TANDEM_ASSIGN_OR_RETURN(const Region bias,
                            lowering.GetFixed(node.inputs[2], Float32Layout(Shape({weight_shape[0]}))));
    reads.push_back({DNNL_ARG_BIAS, desc.bias_desc(), bias});
  }
  const Region y = lowering.DefinePlain(node.outputs[0]);
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  lowering.Emit(OneDnnStep(
      "linear onednn", dnnl::inner_product_forward(desc), std::move(reads),
      {{DNNL_ARG_DST, desc.dst_desc(), y}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}}));
  return absl::OkStatus();
}

absl::Status LowerOneDnnGradInput(Lowering& lowering, const Node& node) {
  const Shape& dx_shape = lowering.shape(node.outputs[0]);
  const Problem problem(lowering, dx_shape, lowering.shape(node.inputs[1]), lowering.shape(node.inputs[0]));
  const dnnl::inner_product_backward_data::primitive_desc desc(
      {Problem::Float(problem.x), problem.Factor(problem.weight), problem.Factor(problem.y)},
      problem.attributes, OneDnnEngine(), problem.Hint());
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, node.inputs[1]));
  const Region dx = lowering.DefinePlain(node.outputs[0]);
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  lowering.Emit(OneDnnStep(
      "linear_grad_input onednn", dnnl::inner_product_backward_data(desc),
      {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), dy}, {DNNL_ARG_WEIGHTS, desc.weights_desc(), weight}},
      {{DNNL_ARG_DIFF_SRC, desc.diff_src_desc(), dx},
       {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}}));
  return absl::OkStatus();
}

absl::Status LowerOneDnnGradWeight(Lowering& lowering, const Node& node) {
  const bool has_bias = static_cast<const LinearGradWeightOp&>(*node.op).has_bias;
  const Shape& weight_shape = lowering.shape(node.outputs[0]);
  const Problem problem(lowering, lowering.shape(node.inputs[0]), weight_shape,
                        lowering.shape(node.inputs[1]));
  const memory::desc dweight_desc = Problem::Float(weight_shape);
  const auto operation = has_bias ? dnnl::inner_product_backward_weights::desc(
                                        problem.Factor(problem.x), dweight_desc,
                                        Problem::Float(Shape({weight_shape[0]})), problem.Factor(problem.y))
                                  : dnnl::inner_product_backward_weights::desc(
                                        problem.Factor(problem.x), dweight_desc, problem.Factor(problem.y));
  const dnnl::inner_product_backward_weights::primitive_desc desc(operation, problem.attributes,
                                                                  OneDnnEngine(), problem.Hint());
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, node.inputs[1]));
  const Region dweight = lowering.DefinePlain(node.outputs[0]);
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  std::vector<OneDnnArgument> writes = {{DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc(), dweight},
                                        {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}};
  if (has_bias) {
    const Region dbias = lowering.DefinePlain(node.outputs[1]);
    writes.push_back({DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc(), dbias});
  }
  lowering.Emit(
      OneDnnStep("linear_grad_weight onednn", dnnl::inner_product_backward_weights(desc),
                 {{DNNL_ARG_SRC, desc.src_desc(), x}, {DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), dy}},
                 std::move(writes)));
  return absl::OkStatus();
}

}  // namespace

bool FillsBlocks(int64_t rows) {
  const int64_t padded = (rows + kBlock - 1) / kBlock * kBlock;
  return 4 * rows >= 3 * padded && rows > 0;
}

bool LinearTakesBatchBlocked(const Lowering& lowering, const Shape& x) {
  if (lowering.algorithms() == Algorithms::kOneDnn || x.rank() != 2 || !FillsBlocks(x[0])) return false;
  // Longer rows gain more from bfloat16 than from a layout without conversions.
  return lowering.compute() == DType::kFloat32 || x[1] <= 1024;
}

void EmitGradBias(Lowering& lowering, Region dy, const Shape& dy_shape, ValueId dbias) {
  const int64_t channels = dy_shape[1];
  const Region to = lowering.DefinePlain(dbias);
  const int64_t blocks = (dy_shape[0] + kBlock - 1) / kBlock;
  const int64_t positions = dy_shape.elements() / (dy_shape[0] * channels);
  lowering.Emit(
      {.name = "grad_bias batch-blocked", .reads = {dy}, .writes = {to}, .run = [=](const RunContext& run) {
         run.team->For(channels, [&](int64_t begin, int64_t end) {
           run.kernels->grad_bias(blocks, channels, positions, run.At<const float>(dy), run.At<float>(to),
                                  begin, end);
         });
         return absl::OkStatus();
       }});
}

absl::Status LowerLinearForward(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  if (TakesTileProducts(lowering, node)) return LowerTiledLinearForward(lowering, node);
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  if (!LinearTakesBatchBlocked(lowering, x_shape)) return LowerOneDnnForward(lowering, node);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetBatchBlocked(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
  const bool has_bias = node.inputs.size() == 3;
  Region bias = weight;
  if (has_bias) {
    TANDEM_ASSIGN_OR_RETURN(bias, lowering.GetPlain(node.inputs[2]));
  }
  const Node* relu = lowering.ReluAfter(node);
  if (relu != nullptr) lowering.Absorb(relu->id);
  const bool with_relu = relu != nullptr;
  const Region y = lowering.Define(with_relu ? relu->outputs[0] : node.outputs[0],
                                   Layout::BatchBlocked(DType::kFloat32, y_shape));
  const LinearSizes sizes = SizesOf(x_shape, y_shape);
  lowering.Emit({.name = with_relu ? "linear + relu batch-blocked" : "linear batch-blocked",
                 .reads = {x, weight, bias},
                 .writes = {y},
                 .run = [=](const RunContext& run) {
                   const float* b = has_bias ? run.At<const float>(bias) : nullptr;
                   run.team->For(sizes.outputs, [&](int64_t begin, int64_t end) {
                     run.kernels->linear_forward(sizes, run.At<const float>(x), run.At<const float>(weight),
                                                 b, with_relu, run.At<float>(y), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerLinearGradInput(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  if (TakesTileProducts(lowering, node)) return LowerTiledLinearGradInput(lowering, node);
  const Shape& dy_shape = lowering.shape(node.inputs[0]);
  const Shape& dx_shape = lowering.shape(node.outputs[0]);
  if (!LinearTakesBatchBlocked(lowering, dx_shape)) return LowerOneDnnGradInput(lowering, node);
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetBatchBlocked(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
  const Region dx = lowering.Define(node.outputs[0], Layout::BatchBlocked(DType::kFloat32, dx_shape));
  const LinearSizes sizes = SizesOf(dx_shape, dy_shape);
  lowering.Emit({.name = "linear_grad_input batch-blocked",
                 .reads = {dy, weight},
                 .writes = {dx},
                 .run = [=](const RunContext& run) {
                   run.team->For(sizes.inputs, [&](int64_t begin, int64_t end) {
                     run.kernels->linear_grad_input(sizes, run.At<const float>(dy),
                                                    run.At<const float>(weight), run.At<float>(dx), begin,
                                                    end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerLinearGradWeight(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  if (TakesTileProducts(lowering, node)) return LowerTiledLinearGradWeight(lowering, node);
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& dy_shape = lowering.shape(node.inputs[1]);
  if (!LinearTakesBatchBlocked(lowering, x_shape)) return LowerOneDnnGradWeight(lowering, node);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetBatchBlocked(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetBatchBlocked(node.inputs[1]));
  const LinearSizes sizes = SizesOf(x_shape, dy_shape);
  const int64_t rows = x_shape[0];
  const Region x_rows = lowering.Scratch(sizes.blocks * kBlock * sizes.inputs * SizeOf(DType::kFloat32));
  lowering.Emit({.name = "unblock rows", .reads = {x}, .writes = {x_rows}, .run = [=](const RunContext& run) {
                   run.team->For(sizes.blocks, [&](int64_t begin, int64_t end) {
                     run.kernels->unblock_rows(rows, sizes.inputs, run.At<const float>(x),
                                               run.At<float>(x_rows), true, begin, end);
                   });
                   return absl::OkStatus();
                 }});
  const Region dweight = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "linear_grad_weight batch-blocked",
                 .reads = {x_rows, dy},
                 .writes = {dweight},
                 .run = [=](const RunContext& run) {
                   run.team->For(sizes.outputs, [&](int64_t begin, int64_t end) {
                     run.kernels->linear_grad_weight(sizes, run.At<const float>(x_rows),
                                                     run.At<const float>(dy), run.At<float>(dweight), begin,
                                                     end);
                   });
                   return absl::OkStatus();
                 }});
  if (static_cast<const LinearGradWeightOp&>(*node.op).has_bias) {
    EmitGradBias(lowering, dy, dy_shape, node.outputs[1]);
  }
  return absl::OkStatus();
}

}  // namespace tandem::cpu
