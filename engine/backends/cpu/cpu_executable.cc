#include "engine/backends/cpu/cpu_executable.h"

#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/cpu/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {

absl::StatusOr<std::unique_ptr<CpuExecutable>> CpuExecutable::Plan(Lowering& lowering) {
  std::unique_ptr<CpuExecutable> executable(new CpuExecutable(lowering.team()));
  TANDEM_RETURN_IF_ERROR(executable->Take(lowering, /*at_once=*/true));
  TANDEM_ASSIGN_OR_RETURN(const ArenaPlan arena, executable->PlanArenaOfSteps(/*shared=*/true));
  executable->places_ = PlaceBuffers(executable->buffers(), arena, CpuBackend::kAlignment);
  if (lowering.compute() == DType::kBFloat16 && FindTileSupport() == TileSupport::kRefused) {
    executable->notice_ =
        "cannot compute bfloat16 by AMX: Linux refuses this process the tile registers (arch_prctl); "
        "training uses slower instructions; allow arch_prctl in the container's or service's filter of "
        "system calls";
  }
  return executable;
}

CpuExecutable::~CpuExecutable() {
  if (workspace_bytes_ != nullptr) *workspace_bytes_ -= beyond_plan_;
}

absl::Status CpuExecutable::Allocate(int64_t beyond_plan, std::shared_ptr<int64_t> workspace_bytes) {
  arena_ = Memory::Allocate(places_.arena_bytes);
  constants_ = Memory::Allocate(places_.constant_bytes);
  if (arena_.data() == nullptr || constants_.data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes(), " bytes of intermediate values"));
  }
  beyond_plan_ = beyond_plan;
  workspace_bytes_ = std::move(workspace_bytes);
  *workspace_bytes_ += beyond_plan_;
  TANDEM_RETURN_IF_ERROR(FillConstants(buffers(), places_, constants_.data()));
  addresses_ = AddressesOf(buffers(), places_, arena_.data(), constants_.data(), /*inputs=*/nullptr);
  return BindSteps({{.buffers = addresses_.data()}, &team_, &BestKernels()});
}

absl::Status CpuExecutable::Run(absl::Span<const void* const> inputs, Communicator* communicator) {
  if (inputs.size() != places_.input_buffers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the graph takes ", places_.input_buffers.size(),
                                                   " inputs, given were ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Steps only read inputs.
    addresses_[places_.input_buffers[i]] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
  }
  const RunContext context = {
      {.buffers = addresses_.data(), .communicator = communicator, .reductions = &reductions()},
      &team_,
      &BestKernels()};
  // After a failed run no reduction uses the executable's memory.
  const absl::Cleanup end = [&] { reductions().End(communicator); };
  const ScopedTeam scoped_team(team_);
  if (!profile().empty()) {
    TANDEM_RETURN_IF_ERROR(RunProfiled(context));
  } else {
    for (const Step& step : steps()) TANDEM_RETURN_IF_ERROR(step.run(context));
  }
  SetNewest(&addresses_);
  return absl::OkStatus();
}

absl::Status CpuExecutable::RunProfiled(const RunContext& context) {
  auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < steps().size(); ++i) {
    TANDEM_RETURN_IF_ERROR(steps()[i].run(context));
    const auto end = std::chrono::steady_clock::now();
    AddTime(i, std::chrono::duration<double>(end - start).count());
    start = end;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CpuExecutable::ReadMemory(const Layout& layout, const std::byte* data) const {
  return ToTensor(layout, data);
}

}  // namespace tandem::cpu
