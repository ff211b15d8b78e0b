// Dense layers in bfloat16 by tiles, over plain or batch-blocked rows.

#include <utility>

#include "engine/backends/cpu/linear.h"
#include "engine/backends/cpu/products.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/linear.h"

namespace tandem::cpu {
namespace {

// Returns [rows, features] of [..., features].
int64_t RowsOf(const Shape& shape) { return shape.elements() / shape[-1]; }

Layout LayoutOf(bool blocked, const Shape& shape) {
  return blocked ? Layout::BatchBlocked(DType::kFloat32, shape) : Float32Layout(shape);
}

// Return the forms of batch-blocked rows [rows, features] as a factor: its lines are the rows, or the
// features.
TileFactor BlockedRows(int64_t rows, int64_t features, bool columns) {
  return {.lines = rows,
          .depth = features,
          .depth_vectors = false,
          .stride = kBlock,
          .group = features * kBlock,
          .columns = columns};
}
TileFactor BlockedFeatures(int64_t rows, int64_t features, bool columns) {
  return {.lines = features,
          .depth = rows,
          .depth_vectors = true,
          .stride = kBlock,
          .group = features * kBlock,
          .columns = columns};
}

// Returns the form of batch-blocked results, whose columns are the rows of the batch.
TileProduct BlockedResult(int64_t rows, int64_t features) {
  return {
      .rows = features, .columns = rows, .stride = kBlock, .group = features * kBlock, .whole_groups = true};
}

TileProduct PlainResult(int64_t rows, int64_t columns) {
  return {.rows = rows, .columns = columns, .stride = columns};
}

}  // namespace

absl::Status LowerTiledLinearForward(Lowering& lowering, const Node& node) {
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  const bool blocked = LinearTakesBatchBlocked(lowering, x_shape);
  const int64_t rows = RowsOf(x_shape);
  const int64_t inputs = x_shape[-1];
  const int64_t outputs = y_shape[-1];
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
  Product product;
  if (blocked) {
    product.a = weight;
    product.a_form = RowsOfA(outputs, inputs);
    TANDEM_ASSIGN_OR_RETURN(product.b, lowering.GetBatchBlocked(node.inputs[0]));
    product.b_form = BlockedRows(rows, inputs, true);
    product.c_form = BlockedResult(rows, outputs);
  } else {
    product.a_form = RowsOfA(rows, inputs);
    TANDEM_ASSIGN_OR_RETURN(product.a, GetTileFactor(lowering, node.inputs[0], product.a_form));
    product.b = weight;
    product.b_form = TransposedB(outputs, inputs);
    product.c_form = PlainResult(rows, outputs);
  }
  if (node.inputs.size() == 3) {
    TANDEM_ASSIGN_OR_RETURN(product.bias, lowering.GetPlain(node.inputs[2]));
    product.has_row_bias = blocked;
    product.has_column_bias = !blocked;
  }
  const Node* relu = lowering.ReluAfter(node);
  product.c_form.relu = relu != nullptr;
  if (relu != nullptr) lowering.Absorb(relu->id);
  product.c =
      lowering.Define(relu != nullptr ? relu->outputs[0] : node.outputs[0], LayoutOf(blocked, y_shape));
  product.name = relu != nullptr ? "linear + relu tiles" : "linear tiles";
  EmitProduct(lowering, product);
  return absl::OkStatus();
}

absl::Status LowerTiledLinearGradInput(Lowering& lowering, const Node& node) {
  const Shape& dy_shape = lowering.shape(node.inputs[0]);
  const Shape& dx_shape = lowering.shape(node.outputs[0]);
  const bool blocked = LinearTakesBatchBlocked(lowering, dx_shape);
  const int64_t rows = RowsOf(dx_shape);
  const int64_t inputs = dx_shape[-1];
  const int64_t outputs = dy_shape[-1];
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[0], LayoutOf(blocked, dy_shape)));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
  Product product;
  product.name = "linear_grad_input tiles";
  if (blocked) {
    product.a = weight;
    product.a_form = TransposedA(outputs, inputs);
    product.b = dy;
    product.b_form = BlockedRows(rows, outputs, true);
    product.c_form = BlockedResult(rows, inputs);
  } else {
    product.a = dy;
    product.a_form = RowsOfA(rows, outputs);
    product.b = weight;
    product.b_form = RowsOfB(outputs, inputs);
    product.c_form = PlainResult(rows, inputs);
  }
  product.c = lowering.Define(node.outputs[0], LayoutOf(blocked, dx_shape));
  EmitProduct(lowering, product);
  return absl::OkStatus();
}

absl::Status LowerTiledLinearGradWeight(Lowering& lowering, const Node& node) {
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& dy_shape = lowering.shape(node.inputs[1]);
  const bool blocked = LinearTakesBatchBlocked(lowering, x_shape);
  const int64_t rows = RowsOf(x_shape);
  const int64_t inputs = x_shape[-1];
  const int64_t outputs = dy_shape[-1];
  Product product;
  product.name = "linear_grad_weight tiles";
  TANDEM_ASSIGN_OR_RETURN(product.a, lowering.Get(node.inputs[1], LayoutOf(blocked, dy_shape)));
  if (blocked) {
    product.a_form = BlockedFeatures(rows, outputs, false);
    product.b_form = BlockedFeatures(rows, inputs, true);
    TANDEM_ASSIGN_OR_RETURN(product.b, lowering.GetBatchBlocked(node.inputs[0]));
  } else {
    product.a_form = TransposedA(rows, outputs);
    product.b_form = RowsOfB(rows, inputs);
    TANDEM_ASSIGN_OR_RETURN(product.b, GetTileFactor(lowering, node.inputs[0], product.b_form));
  }
  product.c_form = PlainResult(outputs, inputs);
  product.c = lowering.DefinePlain(node.outputs[0]);
  const Region dy = product.a;
  EmitProduct(lowering, product);
  if (!static_cast<const LinearGradWeightOp&>(*node.op).has_bias) return absl::OkStatus();
  if (blocked) {
    EmitGradBias(lowering, dy, dy_shape, node.outputs[1]);
    return absl::OkStatus();
  }
  const Region dbias = lowering.DefinePlain(node.outputs[1]);
  lowering.Emit({.name = "linear_grad_bias tiles",
                 .reads = {dy},
                 .writes = {dbias},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   run.team->For((outputs + 63) / 64, [&](int64_t begin, int64_t end) {
                     tiles->column_sums(rows, outputs, run.At<const float>(dy), run.At<float>(dbias), begin,
                                        end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
