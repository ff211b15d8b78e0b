#include "engine/backend/gradient_factor_cases.h"

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/gradient_factors.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"

namespace tandem {
namespace {

OpCase Orthonormalization(int64_t rows, int64_t columns) {
  return {absl::StrCat("orthonormalize ", rows, " x ", columns), [=](CaseGraph& g) {
            g.Add(std::make_shared<OrthonormalizeOp>(), {g.Input("x", {rows, columns})});
          }};
}

// Columns a, 3 a, 0 and b: the second and the third are replaced.
OpCase DependentColumns(int64_t rows) {
  return {absl::StrCat("orthonormalize dependent columns of ", rows), [=](CaseGraph& g) {
            const ValueId a = g.Input("a", {rows, 1});
            const ValueId multiple = g.AddHidden(std::make_shared<ScaleOp>(3), {a})[0];
            const ValueId zero = g.graph().AddConstant(0, g.dtype(), {rows, 1});
            const ValueId x =
                g.AddHidden(std::make_shared<ConcatOp>(1), {a, multiple, zero, g.Input("b", {rows, 1})})[0];
            g.Add(std::make_shared<OrthonormalizeOp>(), {x});
            g.Add(std::make_shared<OrthonormalizeOp>(), {g.graph().AddConstant(0, g.dtype(), {rows, 2})});
          }};
}

OpCase Restoration(int64_t rows, int64_t columns, int64_t rank) {
  const bool tall = rows > columns;
  return {absl::StrCat("restore_gradient ", rows, " x ", columns, " rank ", rank), [=](CaseGraph& g) {
            const ValueId basis = g.Input("basis", {tall ? columns : rows, rank});
            const ValueId other = g.Input("other", {tall ? rows : columns, rank});
            const ValueId start =
                g.Variable("start", {tall ? rows : columns, rank}, -1, 1, VariableKind::kOptimizerState);
            g.Add(std::make_shared<RestoreGradientOp>(tall), {basis, other, start});
          }};
}

// All of a step that sends the factors of a convolution's gradient.
OpCase CompressedStep(Shape shape, int64_t rank) {
  return {"a step with a compressed gradient", [=](CaseGraph& g) {
            const int64_t rows = shape[0];
            const int64_t columns = shape.elements() / rows;
            const ValueId parameter = g.Variable("parameter", shape);
            const ValueId error = g.Variable("error", {rows, columns}, -1, 1, VariableKind::kResidual);
            const ValueId start = g.Variable("start", {columns, rank}, -1, 1, VariableKind::kOptimizerState);
            const auto add = [&](auto op, std::vector<ValueId> inputs) {
              return g.AddHidden(std::make_shared<decltype(op)>(op), std::move(inputs));
            };
            const ValueId matrix = add(ReshapeOp(Shape({rows, columns})), {g.Input("grad", shape)})[0];
            add(AccumulateGradientOp(1, /*overwrite=*/false), {error, matrix});
            const ValueId sent = add(AllReduceOp(0.5, 0, 1), add(MatmulOp(), {error, start}))[0];
            const ValueId basis = add(OrthonormalizeOp(), {sent})[0];
            const ValueId own = add(MatmulOp(true), {error, basis})[0];
            const ValueId product = add(MatmulOp(false, true), {basis, own})[0];
            add(AccumulateGradientOp(-1, /*overwrite=*/false), {error, product});
            const ValueId other = add(AllReduceOp(0.5, 1, 1), {own})[0];
            const ValueId whole = add(RestoreGradientOp(/*tall=*/false), {basis, other, start})[0];
            const ValueId grad = add(ReshapeOp(shape), {whole})[0];
            g.Add(std::make_shared<SgdOp>(0, 0, false, 0),
                  {parameter, grad, g.Number("rate", 0.5), g.Number("step", int64_t{0})});
          }};
}

}  // namespace

std::vector<OpCase> GradientFactorCases() {
  return {
      Orthonormalization(1, 1),   Orthonormalization(7, 3),   Orthonormalization(5, 5),
      Orthonormalization(301, 4), Orthonormalization(70, 64), DependentColumns(9),
      DependentColumns(517),      Restoration(7, 9, 2),       Restoration(33, 8, 3),
      Restoration(64, 300, 4),    Restoration(12, 10, 1),     CompressedStep({6, 5, 3, 3}, 2),
      CompressedStep({8, 48}, 3),
  };
}

}  // namespace tandem
