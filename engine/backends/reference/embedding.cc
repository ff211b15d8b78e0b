// Embeddings and positions.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/backends/reference/kernel.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/positions.h"

namespace tandem::reference {
namespace {

absl::Status CheckIndices(absl::Span<const int32_t> indices, int64_t rows) {
  for (const int32_t index : indices) {
    if (index < 0 || index >= rows) {
      return absl::InvalidArgumentError(absl::StrCat("index ", index, " is not one of ", rows, " rows"));
    }
  }
  return absl::OkStatus();
}

// Calls visit(element of the joined tensor, part, element of the part) for all elements of `parts` tensors
// [N, H, L, D] and of the joined tensor [N, L, parts H D].
template <typename Visit>
void ForEachOfHeads(const Shape& part, int64_t parts, const Visit& visit) {
  const int64_t heads = part[1];
  const int64_t length = part[2];
  const int64_t width = part[3];
  for (int64_t n = 0; n < part[0]; ++n) {
    for (int64_t p = 0; p < parts; ++p) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t l = 0; l < length; ++l) {
          for (int64_t d = 0; d < width; ++d) {
            visit((n * length + l) * parts * heads * width + (p * heads + h) * width + d, p,
                  ((n * heads + h) * length + l) * width + d);
          }
        }
      }
    }
  }
}

}  // namespace

absl::Status GatherRows(const KernelCall& call) {
  const int64_t width = call.inputs[0]->shape()[1];
  const absl::Span<const double> weight = Numbers(call.inputs[0]);
  const absl::Span<const int32_t> indices = call.inputs[1]->data<int32_t>();
  TANDEM_RETURN_IF_ERROR(CheckIndices(indices, call.inputs[0]->shape()[0]));
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < indices.size(); ++i) {
    for (int64_t d = 0; d < width; ++d) y[i * width + d] = weight[indices[i] * width + d];
  }
  return absl::OkStatus();
}

absl::Status GatherRowsGrad(const KernelCall& call) {
  const auto& op = call.op<GatherRowsGradOp>();
  const absl::Span<const int32_t> indices = call.inputs[0]->data<int32_t>();
  TANDEM_RETURN_IF_ERROR(CheckIndices(indices, op.rows));
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_weight = Numbers(call.outputs[0]);
  const int64_t width = call.outputs[0]->shape()[1];
  std::ranges::fill(grad_weight, 0.0);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] == op.padding_index) continue;
    for (int64_t d = 0; d < width; ++d) grad_weight[indices[i] * width + d] += grad_y[i * width + d];
  }
  return absl::OkStatus();
}

absl::Status AddToEach(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> each = Numbers(call.inputs[1]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] + each[i % each.size()];
  return absl::OkStatus();
}

absl::Status SumOfEach(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> sum = Numbers(call.outputs[0]);
  std::ranges::fill(sum, 0.0);
  for (size_t i = 0; i < x.size(); ++i) sum[i % sum.size()] += x[i];
  return absl::OkStatus();
}

absl::Status AddSinusoids(const KernelCall& call) {
  const Shape& shape = call.inputs[0]->shape();
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    y[i] = x[i] + Sinusoid(i / shape[2] % shape[1], i % shape[2], shape[2]);
  }
  return absl::OkStatus();
}

absl::Status SplitHeads(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  ForEachOfHeads(
      call.outputs[0]->shape(), static_cast<int64_t>(call.outputs.size()),
      [&](int64_t joined, int64_t part, int64_t i) { Numbers(call.outputs[part])[i] = x[joined]; });
  return absl::OkStatus();
}

absl::Status MergeHeads(const KernelCall& call) {
  const absl::Span<double> y = Numbers(call.outputs[0]);
  ForEachOfHeads(call.inputs[0]->shape(), static_cast<int64_t>(call.inputs.size()),
                 [&](int64_t joined, int64_t part, int64_t i) { y[joined] = Numbers(call.inputs[part])[i]; });
  return absl::OkStatus();
}

}  // namespace tandem::reference
