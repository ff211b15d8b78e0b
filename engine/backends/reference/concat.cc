#include "engine/graph/ops/concat.h"

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// Calls visit(whole, part) with the place of each element of a part, in the whole and in the part. The part
// starts at `offset` along `axis`.
template <typename Visit>
void ForEachOfPart(const Shape& whole, const Shape& part, int axis, int64_t offset, Visit visit) {
  int64_t inner = 1;
  for (int i = axis + 1; i < whole.rank(); ++i) inner *= whole[i];
  for (int64_t i = 0; i < part.elements(); ++i) {
    const int64_t outer = i / (part[axis] * inner);
    const int64_t within = i % (part[axis] * inner);
    visit(outer * whole[axis] * inner + offset * inner + within, i);
  }
}

}  // namespace

absl::Status Concat(const KernelCall& call) {
  const int axis = call.op<ConcatOp>().axis;
  const absl::Span<double> y = Numbers(call.outputs[0]);
  int64_t offset = 0;
  for (Tensor* input : call.inputs) {
    const absl::Span<const double> x = Numbers(input);
    ForEachOfPart(call.outputs[0]->shape(), input->shape(), axis, offset,
                  [&](int64_t whole, int64_t part) { y[whole] = x[part]; });
    offset += input->shape()[axis];
  }
  return absl::OkStatus();
}

absl::Status Split(const KernelCall& call) {
  const int axis = call.op<SplitOp>().axis;
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  int64_t offset = 0;
  for (Tensor* output : call.outputs) {
    const absl::Span<double> y = Numbers(output);
    ForEachOfPart(call.inputs[0]->shape(), output->shape(), axis, offset,
                  [&](int64_t whole, int64_t part) { y[part] = x[whole]; });
    offset += output->shape()[axis];
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
