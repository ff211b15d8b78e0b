#include "engine/backends/cpu/attention.h"

#include <cstring>
#include <utility>
#include <vector>

#include "dnnl.hpp"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/backends/cpu/products.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/matmul.h"

namespace tandem::cpu {
namespace {

// Returns oneDNN's view of a tensor [..., rows, columns]: [matrices, rows, columns], or their transposes.
dnnl::memory::desc MatricesDesc(const Shape& shape, bool transposed) {
  const int64_t rows = shape[shape.rank() - 2];
  const int64_t columns = shape[-1];
  const int64_t matrices = shape.elements() / (rows * columns);
  if (transposed) {
    return {{matrices, columns, rows}, dnnl::memory::data_type::f32, {rows * columns, 1, columns}};
  }
  return {{matrices, rows, columns}, dnnl::memory::data_type::f32, {rows * columns, columns, 1}};
}

template <typename Op>
AttentionSizes SizesOf(const Op& op, const Shape& scores) {
  return {.queries = scores[scores.rank() - 2],
          .keys = scores[-1],
          .scale = static_cast<float>(op.scale),
          .causal = op.causal};
}

// A tensor [N, L, parts H D] and `parts` tensors [N, H, L, D].
struct HeadSizes {
  int64_t samples = 0;
  int64_t heads = 0;
  int64_t length = 0;
  int64_t width = 0;
  int64_t parts = 0;

  HeadSizes(const Shape& part, size_t count)
      : samples(part[0]),
        heads(part[1]),
        length(part[2]),
        width(part[3]),
        parts(static_cast<int64_t>(count)) {}

  // Calls copy(first element in the joined tensor, part, first element in the part) for each run of `width`
  // elements of the samples and positions [begin, end).
  template <typename Copy>
  void ForEachRun(int64_t begin, int64_t end, const Copy& copy) const {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / length;
      const int64_t l = row % length;
      for (int64_t p = 0; p < parts; ++p) {
        for (int64_t h = 0; h < heads; ++h) {
          copy(((row * parts + p) * heads + h) * width, p, ((n * heads + h) * length + l) * width);
        }
      }
    }
  }
};

absl::Status LowerTiledMatmul(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const MatmulOp&>(*node.op);
  const Shape& a = lowering.shape(node.inputs[0]);
  const Shape& b = lowering.shape(node.inputs[1]);
  const Shape& y = lowering.shape(node.outputs[0]);
  const auto rows = [](const Shape& shape) { return shape[shape.rank() - 2]; };
  Product product;
  product.name = "matmul tiles";
  product.a_form = op.transpose_a ? TransposedA(rows(a), a[-1]) : RowsOfA(rows(a), a[-1]);
  product.b_form = op.transpose_b ? TransposedB(rows(b), b[-1]) : RowsOfB(rows(b), b[-1]);
  TANDEM_ASSIGN_OR_RETURN(product.a, GetTileFactor(lowering, node.inputs[0], product.a_form));
  TANDEM_ASSIGN_OR_RETURN(product.b, GetTileFactor(lowering, node.inputs[1], product.b_form));
  product.c_form = {.rows = rows(y), .columns = y[-1], .stride = y[-1]};
  product.a_matrix = rows(a) * a[-1];
  product.b_matrix = rows(b) * b[-1];
  product.c_matrix = rows(y) * y[-1];
  product.matrices = y.elements() / product.c_matrix;
  product.c = lowering.DefinePlain(node.outputs[0]);
  EmitProduct(lowering, product);
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerMatmul(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  if (TakesTileProducts(lowering, node)) return LowerTiledMatmul(lowering, node);
  const auto& op = static_cast<const MatmulOp&>(*node.op);
  const auto fixed = [&](ValueId id) {
    return lowering.GetFixed(id, Layout::Plain(DType::kFloat32, lowering.shape(id)));
  };
  TANDEM_ASSIGN_OR_RETURN(const Region a, fixed(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region b, fixed(node.inputs[1]));
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc desc(
      {MatricesDesc(lowering.shape(node.inputs[0]), op.transpose_a),
       MatricesDesc(lowering.shape(node.inputs[1]), op.transpose_b), MatricesDesc(y_shape, false)},
      attributes, OneDnnEngine());
  const Region y = lowering.DefinePlain(node.outputs[0]);
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  lowering.Emit(OneDnnStep(
      "matmul", dnnl::matmul(desc),
      {{DNNL_ARG_SRC, desc.src_desc(), a}, {DNNL_ARG_WEIGHTS, desc.weights_desc(), b}},
      {{DNNL_ARG_DST, desc.dst_desc(), y}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}}));
  return absl::OkStatus();
}

absl::Status LowerAttentionSoftmax(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const AttentionSizes sizes = SizesOf(static_cast<const AttentionSoftmaxOp&>(*node.op), shape);
  const int64_t rows = shape.elements() / sizes.keys;
  TANDEM_ASSIGN_OR_RETURN(const Region scores, lowering.GetPlain(node.inputs[0]));
  const Region weights = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "attention_softmax",
                 .reads = {scores},
                 .writes = {weights},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   run.team->For(rows, [&](int64_t begin, int64_t end) {
                     run.kernels->attention_softmax(sizes, run.At<const float>(scores),
                                                    run.At<float>(weights), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAttentionSoftmaxGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const AttentionSizes sizes = SizesOf(static_cast<const AttentionSoftmaxGradOp&>(*node.op), shape);
  const int64_t rows = shape.elements() / sizes.keys;
  TANDEM_ASSIGN_OR_RETURN(const Region weights, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region grads, lowering.GetPlain(node.inputs[1]));
  const Region grad_scores = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "attention_softmax_grad",
                 .reads = {weights, grads},
                 .writes = {grad_scores},
                 .in_place = {{0, 1}, {0, 0}},
                 .run = [=](const RunContext& run) {
                   run.team->For(rows, [&](int64_t begin, int64_t end) {
                     run.kernels->attention_softmax_grad(sizes, run.At<const float>(weights),
                                                         run.At<const float>(grads),
                                                         run.At<float>(grad_scores), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerSplitHeads(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.outputs[0]);
  const HeadSizes sizes(shape, node.outputs.size());
  TANDEM_ASSIGN_OR_RETURN(const Region joined, lowering.GetPlain(node.inputs[0]));
  const std::vector<Region> parts = lowering.DefineAllPlain(node);
  lowering.Emit(
      {.name = "split_heads", .reads = {joined}, .writes = parts, .run = [=](const RunContext& run) {
         const float* from = run.At<const float>(joined);
         run.team->For(sizes.samples * sizes.length, [&](int64_t begin, int64_t end) {
           sizes.ForEachRun(begin, end, [&](int64_t i, int64_t part, int64_t j) {
             std::memcpy(run.At<float>(parts[part]) + j, from + i, sizes.width * sizeof(float));
           });
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerMergeHeads(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const HeadSizes sizes(lowering.shape(node.inputs[0]), node.inputs.size());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> parts, lowering.GetAllPlain(node));
  const Region joined = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit(
      {.name = "merge_heads", .reads = parts, .writes = {joined}, .run = [=](const RunContext& run) {
         float* to = run.At<float>(joined);
         run.team->For(sizes.samples * sizes.length, [&](int64_t begin, int64_t end) {
           sizes.ForEachRun(begin, end, [&](int64_t i, int64_t part, int64_t j) {
             std::memcpy(to + i, run.At<const float>(parts[part]) + j, sizes.width * sizeof(float));
           });
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
