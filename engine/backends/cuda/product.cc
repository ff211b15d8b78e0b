#include "engine/backends/cuda/product.h"

#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/bias.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Adds the step that adds `bias`, unless it is kNoValue, to the product `c` [m, n], and applies the ReLU if
// requested.
absl::Status EmitEpilogue(Lowering& lowering, const std::string& name, const GemmSpec& spec, Region c,
                          ValueId bias, bool relu) {
  Region addend = c;
  std::vector<Region> reads = {c};
  const bool has_bias = bias != kNoValue;
  if (has_bias) {
    TANDEM_ASSIGN_OR_RETURN(addend, lowering.Get(bias, Layout::Plain(DType::kFloat32, lowering.shape(bias))));
    reads.push_back(addend);
  }
  const ChannelSizes sizes = ChannelSizesOf(Shape({spec.m, spec.n}));
  lowering.Emit({.name = name + ": epilogue",
                 .reads = std::move(reads),
                 .writes = {c},
                 .run = [=, type = spec.result_type](const RunContext& run) {
                   AddChannelBias(sizes, /*channels_last=*/false, type, run.At(c),
                                  has_bias ? run.At<const float>(addend) : nullptr, relu, run.At(c),
                                  run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Status EmitProductTo(Lowering& lowering, const std::string& name, GemmSpec spec, Region a, Region b,
                           ValueId bias, bool relu, Region c, int64_t workspace_cap) {
  absl::StatusOr<std::unique_ptr<Gemm>> planned = lowering.device().blas->Plan(spec, workspace_cap);
  // If the library does not add the bias, another kernel does.
  const bool bias_remains = absl::IsUnimplemented(planned.status()) && spec.bias;
  if (bias_remains) {
    spec.bias = false;
    planned = lowering.device().blas->Plan(spec, workspace_cap);
  }
  TANDEM_RETURN_IF_ERROR(planned.status());
  const std::shared_ptr<const Gemm> gemm = *std::move(planned);
  std::vector<Region> reads = {a, b};
  Region addend = a;
  const bool has_bias = spec.bias;
  if (has_bias) {
    TANDEM_ASSIGN_OR_RETURN(addend,
                            lowering.Get(bias, Layout::Plain(spec.result_type, lowering.shape(bias))));
    reads.push_back(addend);
  }
  std::vector<Region> writes = {c};
  Region workspace = c;
  const bool works = gemm->workspace_bytes() > 0;
  if (works) {
    workspace = lowering.Scratch(gemm->workspace_bytes());
    writes.push_back(workspace);
  }
  lowering.Emit({.name = name,
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .run = [=](const RunContext& run) {
                   return gemm->Run(run.At(a), run.At(b), run.At(c), has_bias ? run.At(addend) : nullptr,
                                    works ? run.At(workspace) : nullptr, run.stream);
                 }});
  if (!bias_remains && !relu) return absl::OkStatus();
  return EmitEpilogue(lowering, name, spec, c, bias_remains ? bias : kNoValue, relu);
}

absl::Status EmitProduct(Lowering& lowering, const std::string& name, const GemmSpec& spec, Region a,
                         Region b, ValueId bias, bool relu, ValueId result) {
  const Region c = lowering.Define(result, Layout::Plain(spec.result_type, lowering.shape(result)));
  return EmitProductTo(lowering, name, spec, a, b, bias, relu, c, lowering.workspace_cap());
}

}  // namespace tandem::cuda
