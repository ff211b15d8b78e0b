#include "engine/backends/cuda/lowering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backend/memory_groups.h"
#include "engine/backend/workspace.h"
#include "engine/backends/cuda/kernels/convert.h"
#include "engine/backends/cuda/narrowing.h"
#include "engine/base/status_macros.h"
#include "engine/graph/memory_plan.h"

namespace tandem::cuda {
namespace {

// A few graphs share variables: for whole batches, for the last batch, and for validation. The limit is a
// power of two, so that the measurements of a network also serve similar networks.
int64_t WorkspaceCapOf(int64_t planned_bytes, const CudaOptions& options) {
  const int64_t bytes = kWorkspaceCapBytes / 4 + WorkspaceShareBytes(planned_bytes);
  int64_t cap = 1;
  while (cap <= bytes / 2) cap *= 2;
  return std::min(
      cap, options.workspace_limit_bytes > 0 ? options.workspace_limit_bytes : kGpuWorkspaceLimitBytes);
}

}  // namespace

Lowering::Lowering(const Graph& graph, CudaVariables* variables, DeviceContext* device)
    : LoweringCore(graph, variables,
                   {.before_relu = {"channel_bias", "conv2d", "linear"},
                    .norms = {"batch_norm", "batch_norm_inference", "batch_norm_sync"},
                    .norm_grads = {"batch_norm_grad", "batch_norm_inference_grad"}}),
      device_(device),
      planned_bytes_(PlanMemory(graph).arena_bytes),
      workspace_cap_(WorkspaceCapOf(planned_bytes_, device->options)),
      changed_(graph.values().size(), false) {}

absl::Status Lowering::LowerNode(const Node& node) { return FindLower(node.op->kind())(*this, node); }

absl::StatusOr<Region> Lowering::GetPlainCompute(ValueId id) {
  const DType own = value(id).dtype;
  return Get(id, Layout::Plain(own == DType::kFloat32 ? compute() : own, shape(id)));
}

absl::StatusOr<Region> Lowering::Convert(ValueId id, const Place& from, const Layout& to) {
  if (value(id).role == ValueRole::kVariable && !changed_[id] && compute() != DType::kFloat32 &&
      from.layout.dtype() == DType::kFloat32 && to == from.layout.WithType(compute())) {
    return Narrow(from, to);
  }
  const auto convertible = [this](DType dtype) {
    return dtype == DType::kFloat32 || dtype == compute() || dtype == DType::kUInt8;
  };
  if (from.layout.dtype() != to.dtype() && !(convertible(from.layout.dtype()) && convertible(to.dtype()))) {
    return absl::UnimplementedError(absl::StrCat("cuda: ", ToString(from.layout.dtype()),
                                                 to.shape().ToString(), " as ", ToString(to.dtype())));
  }
  const Region source = from.region;
  const Region target = Scratch(to.bytes());
  const ChannelSizes sizes = ChannelSizesOf(to.shape());
  const DType from_type = from.layout.dtype();
  const DType to_type = to.dtype();
  const bool from_last = from.layout.channels_last();
  const bool to_last = to.channels_last();
  Emit({.name = from_last == to_last ? "convert type" : "convert layout",
        .reads = {source},
        .writes = {target},
        .run = [=](const RunContext& run) {
          ConvertLayout(sizes, run.At<const void>(source), from_type, from_last, run.At<void>(target),
                        to_type, to_last, run.stream);
          return absl::OkStatus();
        }});
  return target;
}

// Converts all variables together when the first is needed. Before this step no variable has changed.
Region Lowering::Narrow(const Place& from, const Layout& to) {
  if (narrowing_ == nullptr) {
    narrowing_ = std::make_shared<Narrowing>(to.dtype());
    narrowing_step_ = steps().size();
    Emit({.name = "convert parameters",
          .run =
              [narrowing = narrowing_](const RunContext& run) {
                narrowing->Run(run.stream);
                return absl::OkStatus();
              },
          .bind = [narrowing = narrowing_](const RunContext& run) { return narrowing->Bind(run); }});
  }
  const Region target = Scratch(to.bytes());
  narrowing_->Add(from.region, target, to.elements());
  steps()[narrowing_step_].reads.push_back(from.region);
  steps()[narrowing_step_].writes.push_back(target);
  return target;
}

Region Lowering::KeptZeros(int64_t bytes) {
  return {AddBuffer({.source = Buffer::Source::kConstant, .bytes = bytes, .dtype = DType::kUInt8}), 0};
}

void Lowering::Changed(ValueId id) {
  changed_[id] = true;
  LoweringCore::Changed(id);
}

}  // namespace tandem::cuda

namespace tandem {
template class LoweringCore<cuda::CudaBackend>;
}  // namespace tandem
