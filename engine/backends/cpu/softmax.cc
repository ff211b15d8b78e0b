#include "engine/backends/cpu/softmax.h"

#include <algorithm>
#include <cmath>

#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/softmax.h"

namespace tandem::cpu {
namespace {

// The lines of a plain tensor along an axis. The elements of a line are `stride` apart.
struct Lines {
  int64_t count = 0;
  int64_t extent = 0;
  int64_t stride = 1;

  int64_t first(int64_t line) const { return line / stride * extent * stride + line % stride; }
};

Lines LinesOf(const Shape& shape, int axis) {
  const int64_t stride = ExtentOf(shape, axis + 1, shape.rank());
  return {.count = ExtentOf(shape, 0, axis) * stride, .extent = shape[axis], .stride = stride};
}

void SoftmaxLine(const float* x, const Lines& lines, bool log, float* y) {
  const int64_t end = lines.extent * lines.stride;
  float largest = x[0];
  for (int64_t k = 0; k < end; k += lines.stride) largest = std::max(largest, x[k]);
  double sum = 0;
  for (int64_t k = 0; k < end; k += lines.stride) {
    const float shifted = x[k] - largest;
    const float exponential = std::exp(shifted);
    sum += exponential;
    y[k] = log ? shifted : exponential;
  }
  const float log_sum = static_cast<float>(std::log(sum));
  const float inverse = static_cast<float>(1 / sum);
  for (int64_t k = 0; k < end; k += lines.stride) y[k] = log ? y[k] - log_sum : y[k] * inverse;
}

void SoftmaxGradLine(const float* y, const float* dy, const Lines& lines, bool log, float* dx) {
  const int64_t end = lines.extent * lines.stride;
  double sum = 0;
  for (int64_t k = 0; k < end; k += lines.stride) sum += log ? dy[k] : dy[k] * y[k];
  const float total = static_cast<float>(sum);
  for (int64_t k = 0; k < end; k += lines.stride) {
    dx[k] = log ? dy[k] - std::exp(y[k]) * total : y[k] * (dy[k] - total);
  }
}

}  // namespace

absl::Status LowerSoftmax(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const SoftmaxOp&>(*node.op);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Lines lines = LinesOf(shape, op.axis);
  const bool log = op.log;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  const Region y = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "softmax",
                 .reads = {x},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   run.team->For(lines.count, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t first = lines.first(i);
                       SoftmaxLine(run.At<const float>(x) + first, lines, log, run.At<float>(y) + first);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerSoftmaxGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const SoftmaxGradOp&>(*node.op);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Lines lines = LinesOf(shape, op.axis);
  const bool log = op.log;
  TANDEM_ASSIGN_OR_RETURN(const Region y, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetPlain(node.inputs[1]));
  const Region dx = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "softmax_grad",
                 .reads = {y, dy},
                 .writes = {dx},
                 .in_place = {{0, 1}, {0, 0}},
                 .run = [=](const RunContext& run) {
                   run.team->For(lines.count, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t first = lines.first(i);
                       SoftmaxGradLine(run.At<const float>(y) + first, run.At<const float>(dy) + first, lines,
                                       log, run.At<float>(dx) + first);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
