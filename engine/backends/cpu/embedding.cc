#include "engine/backends/cpu/embedding.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/positions.h"

namespace tandem::cpu {
namespace {

// The columns that a thread handles together: whole cache lines.
constexpr int64_t kColumns = 16;

absl::Status CheckIndices(const int32_t* indices, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || indices[i] >= rows) {
      return absl::InvalidArgumentError(absl::StrCat("index ", indices[i], " is not one of ", rows, " rows"));
    }
  }
  return absl::OkStatus();
}

// Adds the step y[n] = x[n] + each for all n. `each` returns the summand at run time.
template <typename Each>
absl::Status EmitAddToEach(Lowering& lowering, const Node& node, std::vector<Region> reads,
                           const Each& each) {
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t samples = shape[0];
  const int64_t columns = shape.elements() / samples;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  reads.insert(reads.begin(), x);
  const Region y = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = std::move(reads),
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   const float* added = each(run);
                   run.team->For(samples, [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; ++n) {
                       run.kernels->add(run.At<const float>(x) + n * columns, added,
                                        run.At<float>(y) + n * columns, 0, columns);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerGatherRows(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const int64_t rows = lowering.shape(node.inputs[0])[0];
  const int64_t width = lowering.shape(node.inputs[0])[1];
  const int64_t count = lowering.shape(node.inputs[1]).elements();
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region indices, lowering.GetPlain(node.inputs[1]));
  const Region y = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit(
      {.name = "gather_rows", .reads = {weight, indices}, .writes = {y}, .run = [=](const RunContext& run) {
         const float* from = run.At<const float>(weight);
         const int32_t* index = run.At<const int32_t>(indices);
         float* to = run.At<float>(y);
         TANDEM_RETURN_IF_ERROR(CheckIndices(index, count, rows));
         run.team->For(count, [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             std::memcpy(to + i * width, from + index[i] * width, width * sizeof(float));
           }
         });
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
  TANDEM_ASSIGN_OR_RETURN(const Region grad_y, lowering.GetPlain(node.inputs[1]));
  const Region grad_weight = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "gather_rows_grad",
                 .reads = {indices, grad_y},
                 .writes = {grad_weight},
                 .run = [=](const RunContext& run) {
                   const int32_t* index = run.At<const int32_t>(indices);
                   const float* from = run.At<const float>(grad_y);
                   float* to = run.At<float>(grad_weight);
                   TANDEM_RETURN_IF_ERROR(CheckIndices(index, count, rows));
                   // Each thread has its own columns, because rows may occur several times.
                   run.team->For((width + kColumns - 1) / kColumns, [&](int64_t begin, int64_t end) {
                     const int64_t first = begin * kColumns;
                     const int64_t last = std::min(end * kColumns, width);
                     for (int64_t row = 0; row < rows; ++row) {
                       std::fill(to + row * width + first, to + row * width + last, 0.0f);
                     }
                     for (int64_t i = 0; i < count; ++i) {
                       if (index[i] == padding) continue;
                       float* sum = to + index[i] * width;
                       run.kernels->add(sum, from + i * width, sum, first, last);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAddToEach(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region each, lowering.GetPlain(node.inputs[1]));
  return EmitAddToEach(lowering, node, {each},
                       [each](const RunContext& run) { return run.At<const float>(each); });
}

absl::Status LowerSumOfEach(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t samples = shape[0];
  const int64_t columns = shape.elements() / samples;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  const Region sum = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "sum_of_each", .reads = {x}, .writes = {sum}, .run = [=](const RunContext& run) {
                   const float* from = run.At<const float>(x);
                   float* to = run.At<float>(sum);
                   run.team->For(columns, [&](int64_t begin, int64_t end) {
                     std::copy(from + begin, from + end, to + begin);
                     for (int64_t n = 1; n < samples; ++n) {
                       run.kernels->add(to, from + n * columns, to, begin, end);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAddSinusoids(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const auto table = std::make_shared<std::vector<float>>();
  for (int64_t l = 0; l < shape[1]; ++l) {
    for (int64_t d = 0; d < shape[2]; ++d) table->push_back(static_cast<float>(Sinusoid(l, d, shape[2])));
  }
  return EmitAddToEach(lowering, node, {}, [table](const RunContext&) { return table->data(); });
}

}  // namespace tandem::cpu
