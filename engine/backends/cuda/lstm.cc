// An LSTM over plain tensors, step by step: a product of the states and the weight, and a kernel for the
// other work.

#include "engine/backends/cuda/kernels/lstm.h"

#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/rows.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/lstm.h"

namespace tandem::cuda {
namespace {

// The workspace limit of a step's product. Its operands are small.
constexpr int64_t kLstmWorkspaceCap = int64_t{8} << 20;

LstmSizes SizesOf(const Shape& sequence) {
  return {.samples = sequence[0], .length = sequence[1], .units = sequence[2]};
}

// Returns the position of step `step`, from 0.
int64_t PositionOf(const LstmSizes& sizes, bool reverse, int64_t step) {
  return reverse ? sizes.length - 1 - step : step;
}

absl::StatusOr<Region> GetFloat(Lowering& lowering, ValueId id) {
  return lowering.Get(id, Layout::Plain(DType::kFloat32, lowering.shape(id)));
}

// The product of each step, with its workspace.
struct StepProduct {
  std::shared_ptr<const Gemm> gemm;
  Region workspace;

  absl::Status Run(const RunContext& run, const void* a, const void* b, float* c) const {
    void* memory = gemm->workspace_bytes() > 0 ? run.At(workspace) : nullptr;
    return gemm->Run(a, b, c, nullptr, memory, run.stream);
  }
};
absl::StatusOr<StepProduct> PlanProduct(Lowering& lowering, const GemmSpec& spec,
                                        std::vector<Region>& writes) {
  StepProduct product;
  TANDEM_ASSIGN_OR_RETURN(product.gemm, lowering.device().blas->Plan(spec, kLstmWorkspaceCap));
  if (product.gemm->workspace_bytes() > 0) {
    product.workspace = lowering.Scratch(product.gemm->workspace_bytes());
    writes.push_back(product.workspace);
  }
  return product;
}

absl::Status LowerLstm(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const bool reverse = static_cast<const LstmOp&>(*node.op).reverse;
  const LstmSizes sizes = SizesOf(lowering.shape(node.outputs[0]));
  const DType type = lowering.compute();
  TANDEM_ASSIGN_OR_RETURN(const Region projected, lowering.GetPlainCompute(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region h0, lowering.GetPlainCompute(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region c0, GetFloat(lowering, node.inputs[2]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlainCompute(node.inputs[3]));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, GetFloat(lowering, node.inputs[4]));
  const auto define = [&](int i, DType own) {
    return lowering.Define(node.outputs[i], Layout::Plain(own, lowering.shape(node.outputs[i])));
  };
  const Region y = define(0, type);
  const Region h_n = define(1, type);
  // The cells' state keeps its precision from step to step.
  const Region c_n = define(2, DType::kFloat32);
  const Region gates = define(3, type);
  const Region cells = define(4, DType::kFloat32);
  const Region scratch = lowering.Scratch(sizes.samples * 4 * sizes.units * SizeOf(DType::kFloat32));
  std::vector<Region> writes = {y, h_n, c_n, gates, cells, scratch};
  TANDEM_ASSIGN_OR_RETURN(
      const StepProduct product,
      PlanProduct(
          lowering,
          {.m = sizes.samples, .n = 4 * sizes.units, .k = sizes.units, .transpose_b = true, .type = type},
          writes));
  lowering.Emit({.name = "lstm",
                 .reads = {projected, h0, c0, weight, bias},
                 .writes = std::move(writes),
                 .in_place = {{3, 0}},
                 .run = [=](const RunContext& run) {
                   LstmStep step = {.sizes = sizes,
                                    .projected = run.At(projected),
                                    .product = run.At<float>(scratch),
                                    .bias = run.At<float>(bias),
                                    .gates = run.At(gates),
                                    .cells = run.At<float>(cells),
                                    .y = run.At(y),
                                    .h = run.At(h_n),
                                    .c = run.At<float>(c_n)};
                   for (int64_t i = 0; i < sizes.length; ++i) {
                     const Region h = i == 0 ? h0 : h_n;
                     TANDEM_RETURN_IF_ERROR(
                         product.Run(run, run.At(h), run.At(weight), run.At<float>(scratch)));
                     step.position = PositionOf(sizes, reverse, i);
                     step.c_before = run.At<float>(i == 0 ? c0 : c_n);
                     RunLstmStep(step, type, run.stream);
                   }
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

// Copies the states before each step: those after the previous step, and h0.
void CopyBefore(const LstmSizes& sizes, bool reverse, DType type, const std::byte* h0, const std::byte* y,
                std::byte* before, Stream stream) {
  const int64_t row = sizes.units * SizeOf(type);
  const int64_t sample = sizes.length * row;
  const int64_t shift = reverse ? 0 : row;
  CopyRows({.row_bytes = sample - row,
            .extents = {sizes.samples, 1, 1},
            .x_strides = {sample, 0, 0},
            .y_strides = {sample, 0, 0}},
           y + row - shift, before + shift, stream);
  CopyRows({.row_bytes = row,
            .extents = {sizes.samples, 1, 1},
            .x_strides = {row, 0, 0},
            .y_strides = {sample, 0, 0}},
           h0, before + PositionOf(sizes, reverse, 0) * row, stream);
}

absl::Status LowerLstmGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const bool reverse = static_cast<const LstmGradOp&>(*node.op).reverse;
  const LstmSizes sizes = SizesOf(lowering.shape(node.inputs[3]));
  const DType type = lowering.compute();
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlainCompute(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region h0, lowering.GetPlainCompute(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region c0, GetFloat(lowering, node.inputs[2]));
  TANDEM_ASSIGN_OR_RETURN(const Region y, lowering.GetPlainCompute(node.inputs[3]));
  TANDEM_ASSIGN_OR_RETURN(const Region gates, lowering.GetPlainCompute(node.inputs[4]));
  TANDEM_ASSIGN_OR_RETURN(const Region cells, GetFloat(lowering, node.inputs[5]));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_y, lowering.GetPlainCompute(node.inputs[6]));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_h_n, GetFloat(lowering, node.inputs[7]));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_c_n, GetFloat(lowering, node.inputs[8]));
  const auto define = [&](int i, DType own) {
    return lowering.Define(node.outputs[i], Layout::Plain(own, lowering.shape(node.outputs[i])));
  };
  const Region grad_projected = define(0, type);
  const Region grad_h0 = define(1, DType::kFloat32);
  const Region grad_c0 = define(2, DType::kFloat32);
  const Region before = define(3, type);
  const Region grads = lowering.Scratch(sizes.samples * 4 * sizes.units * SizeOf(type));
  std::vector<Region> writes = {grad_projected, grad_h0, grad_c0, before, grads};
  TANDEM_ASSIGN_OR_RETURN(
      const StepProduct product,
      PlanProduct(lowering, {.m = sizes.samples, .n = sizes.units, .k = 4 * sizes.units, .type = type},
                  writes));
  lowering.Emit(
      {.name = "lstm_grad",
       .reads = {gates, weight, h0, c0, y, cells, grad_y, grad_h_n, grad_c_n},
       .writes = std::move(writes),
       .in_place = {{0, 0}},
       .run = [=](const RunContext& run) {
         LstmStepGrad step = {.sizes = sizes,
                              .gates = run.At(gates),
                              .cells = run.At<float>(cells),
                              .grad_y = run.At(grad_y),
                              .grad_projected = run.At(grad_projected),
                              .grads = run.At(grads),
                              .grad_c_before = run.At<float>(grad_c0)};
         for (int64_t i = sizes.length - 1; i >= 0; --i) {
           const bool ends = i == sizes.length - 1;
           step.position = PositionOf(sizes, reverse, i);
           step.grad_h = run.At<float>(ends ? grad_h_n : grad_h0);
           step.grad_c = run.At<float>(ends ? grad_c_n : grad_c0);
           step.c_before = i == 0 ? run.At<float>(c0)
                                  : run.At<float>(cells) + PositionOf(sizes, reverse, i - 1) * sizes.units;
           step.c_before_row = (i == 0 ? 1 : sizes.length) * sizes.units;
           RunLstmStepGrad(step, type, run.stream);
           TANDEM_RETURN_IF_ERROR(product.Run(run, run.At(grads), run.At(weight), run.At<float>(grad_h0)));
         }
         CopyBefore(sizes, reverse, type, run.At<std::byte>(h0), run.At<std::byte>(y),
                    run.At<std::byte>(before), run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> LstmOps() {
  static constexpr Offered kOps[] = {
      {"lstm", LowerLstm},
      {"lstm_grad", LowerLstmGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
