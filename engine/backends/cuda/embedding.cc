// Embeddings and positions.

#include "engine/backends/cuda/kernels/embedding.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/positions.h"

namespace tandem::cuda {
namespace {

// Returns the value, plain, in the type in which it was computed.
absl::StatusOr<Place> GetPlainHome(Lowering& lowering, ValueId id) {
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(id));
  const Layout layout = Layout::Plain(home.layout.dtype(), home.layout.shape());
  TANDEM_ASSIGN_OR_RETURN(const Region region, lowering.Get(id, layout));
  return Place{region, layout};
}

absl::Status LowerGatherRows(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const int64_t rows = lowering.shape(node.inputs[0])[0];
  const int64_t width = lowering.shape(node.inputs[0])[1];
  const int64_t count = lowering.shape(node.inputs[1]).elements();
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region indices, lowering.GetPlain(node.inputs[1]));
  const DType type = lowering.compute();
  const Region y = lowering.Define(node.outputs[0], Layout::Plain(type, lowering.shape(node.outputs[0])));
  lowering.Emit(
      {.name = "gather_rows", .reads = {weight, indices}, .writes = {y}, .run = [=](const RunContext& run) {
         GatherRows(count, rows, width, run.At<int32_t>(indices), run.At<float>(weight), type, run.At(y),
                    run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerGatherRowsGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  const auto& op = static_cast<const GatherRowsGradOp&>(*node.op);
  const int64_t rows = op.rows;
  const int64_t padding = op.padding_index;
  const Shape& shape = lowering.shape(node.outputs[0]);
  const int64_t width = shape[1];
  const int64_t count = lowering.shape(node.inputs[0]).elements();
  TANDEM_ASSIGN_OR_RETURN(const Region indices, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place grad, GetPlainHome(lowering, node.inputs[1]));
  const Region grad_y = grad.region;
  const DType type = grad.layout.dtype();
  const Region grad_weight = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "gather_rows_grad",
                 .reads = {indices, grad_y},
                 .writes = {grad_weight},
                 .run = [=](const RunContext& run) {
                   GatherRowsGrad(count, rows, width, padding, run.At<int32_t>(indices), type, run.At(grad_y),
                                  run.At<float>(grad_weight), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAddToEach(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place from, GetPlainHome(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region each, lowering.GetPlain(node.inputs[1]));
  const int64_t columns = lowering.shape(node.inputs[1]).elements();
  const int64_t samples = from.layout.shape()[0];
  const DType type = from.layout.dtype();
  const Region x = from.region;
  const Region y = lowering.Define(node.outputs[0], from.layout);
  lowering.Emit({.name = "add_to_each",
                 .reads = {x, each},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   AddToEach(samples, columns, type, run.At(x), run.At<float>(each), run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAddSinusoids(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place from, GetPlainHome(lowering, node.inputs[0]));
  const Shape& shape = from.layout.shape();
  std::vector<float> sinusoids;
  for (int64_t l = 0; l < shape[1]; ++l) {
    for (int64_t d = 0; d < shape[2]; ++d) {
      sinusoids.push_back(static_cast<float>(Sinusoid(l, d, shape[2])));
    }
  }
  const auto table = std::make_shared<DeviceTable<float>>(std::move(sinusoids));
  const int64_t columns = shape[1] * shape[2];
  const int64_t samples = shape[0];
  const DType type = from.layout.dtype();
  const Region x = from.region;
  const Region y = lowering.Define(node.outputs[0], from.layout);
  lowering.Emit({.name = "add_sinusoids",
                 .reads = {x},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run =
                     [=](const RunContext& run) {
                       AddToEach(samples, columns, type, run.At(x), table->data(), run.At(y), run.stream);
                       return absl::OkStatus();
                     },
                 .bind = [table](const RunContext& run) { return table->Upload(run.stream); }});
  return absl::OkStatus();
}

absl::Status LowerSumOfEach(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place from, GetPlainHome(lowering, node.inputs[0]));
  const Shape& shape = lowering.shape(node.outputs[0]);
  const int64_t columns = shape.elements();
  const int64_t samples = from.layout.shape()[0];
  const DType type = from.layout.dtype();
  const Region x = from.region;
  const Region sum = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "sum_of_each", .reads = {x}, .writes = {sum}, .run = [=](const RunContext& run) {
                   SumOfEach(samples, columns, type, run.At(x), run.At<float>(sum), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> EmbeddingOps() {
  static constexpr Offered kOps[] = {
      {"add_sinusoids", LowerAddSinusoids}, {"add_to_each", LowerAddToEach},
      {"gather_rows", LowerGatherRows},     {"gather_rows_grad", LowerGatherRowsGrad},
      {"sum_of_each", LowerSumOfEach},
  };
  return kOps;
}

}  // namespace tandem::cuda
