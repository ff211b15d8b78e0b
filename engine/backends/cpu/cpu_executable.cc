#include "engine/backends/cpu/cpu_executable.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/backend/arena_plan.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/cpu/reductions.h"
#include "engine/backends/cpu/transfer.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

absl::StatusOr<ArenaPlan> PlanArenaOf(Lowering& lowering, const std::vector<Place>& outputs) {
  std::vector<int64_t> bytes;
  for (const Buffer& buffer : lowering.buffers()) {
    bytes.push_back(buffer.source == Buffer::Source::kArena ? buffer.bytes : -1);
  }
  const auto buffers_of = [](const std::vector<Region>& regions) {
    std::vector<int> buffers;
    for (const Region& region : regions) buffers.push_back(region.buffer);
    return buffers;
  };
  std::vector<StepUse> uses;
  for (const Step& step : lowering.steps()) {
    uses.push_back({step.name, buffers_of(step.reads), buffers_of(step.writes), step.in_place});
  }
  std::vector<int> kept;
  for (const Place& output : outputs) kept.push_back(output.region.buffer);
  return PlanArena(bytes, uses, kept);
}

template <typename T>
void Fill(std::byte* memory, int64_t elements, double number) {
  std::fill_n(reinterpret_cast<T*>(memory), elements, static_cast<T>(number));
}

absl::Status FillConstant(const Buffer& buffer, std::byte* memory) {
  const int64_t elements = buffer.bytes / SizeOf(buffer.dtype);
  switch (buffer.dtype) {
    case DType::kFloat32:
      Fill<float>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kFloat64:
      Fill<double>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kInt32:
      Fill<int32_t>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kInt64:
      Fill<int64_t>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kUInt8:
      Fill<uint8_t>(memory, elements, buffer.constant);
      return absl::OkStatus();
    case DType::kBFloat16:
    case DType::kFloat16:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("cpu: a constant of ", ToString(buffer.dtype)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuExecutable>> CpuExecutable::Plan(Lowering& lowering) {
  std::unique_ptr<CpuExecutable> executable(new CpuExecutable(lowering.team()));
  TANDEM_RETURN_IF_ERROR(executable->PlanMemoryOf(lowering));
  if (lowering.compute() == DType::kBFloat16 && FindTileSupport() == TileSupport::kRefused) {
    executable->notice_ =
        "cannot compute bfloat16 by AMX: Linux refuses this process the tile registers (arch_prctl); "
        "training uses "
        "slower instructions; allow arch_prctl in the container's or service's filter of system calls";
  }
  return executable;
}

CpuExecutable::~CpuExecutable() {
  if (workspace_bytes_ != nullptr) *workspace_bytes_ -= beyond_plan_;
}

absl::Status CpuExecutable::PlanMemoryOf(Lowering& lowering) {
  for (size_t i = 0; i < lowering.graph().outputs().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const cpu::Place output, lowering.Output(static_cast<int>(i)));
    outputs_.push_back(output);
  }
  reductions_.Resize(SettleReductions(lowering.steps()));
  TANDEM_ASSIGN_OR_RETURN(ArenaPlan plan, PlanArenaOf(lowering, outputs_));
  arena_bytes_ = plan.bytes;
  arena_offsets_ = std::move(plan.offsets);
  planned_buffers_ = lowering.buffers();
  for (const Buffer& buffer : planned_buffers_) {
    if (buffer.source == Buffer::Source::kConstant) constant_bytes_ += Align(buffer.bytes);
  }
  input_buffers_.assign(lowering.graph().inputs().size(), -1);
  steps_ = std::move(lowering.steps());
  return absl::OkStatus();
}

absl::Status CpuExecutable::Allocate(int64_t beyond_plan, std::shared_ptr<int64_t> workspace_bytes) {
  arena_ = Memory::Allocate(arena_bytes_);
  constants_ = Memory::Allocate(constant_bytes_);
  if (arena_.data() == nullptr || constants_.data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes(), " bytes of intermediate values"));
  }
  beyond_plan_ = beyond_plan;
  workspace_bytes_ = std::move(workspace_bytes);
  *workspace_bytes_ += beyond_plan_;
  buffers_.assign(planned_buffers_.size(), nullptr);
  int64_t constant_offset = 0;
  for (size_t i = 0; i < planned_buffers_.size(); ++i) {
    const Buffer& buffer = planned_buffers_[i];
    switch (buffer.source) {
      case Buffer::Source::kArena:
        if (arena_offsets_[i] >= 0) buffers_[i] = arena_.data() + arena_offsets_[i];
        break;
      case Buffer::Source::kInput:
        input_buffers_[buffer.input] = static_cast<int>(i);
        break;
      case Buffer::Source::kVariable:
        buffers_[i] = buffer.memory;
        break;
      case Buffer::Source::kConstant:
        buffers_[i] = constants_.data() + constant_offset;
        constant_offset += Align(buffer.bytes);
        TANDEM_RETURN_IF_ERROR(FillConstant(buffer, buffers_[i]));
        break;
    }
  }
  const RunContext context = {.buffers = buffers_.data(), .team = &team_, .kernels = &BestKernels()};
  for (Step& step : steps_) {
    if (step.bind) TANDEM_RETURN_IF_ERROR(step.bind(context));
  }
  return absl::OkStatus();
}

absl::Status CpuExecutable::Run(absl::Span<const void* const> inputs, Communicator* communicator) {
  if (inputs.size() != input_buffers_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph takes ", input_buffers_.size(), " inputs, given were ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Steps only read inputs.
    buffers_[input_buffers_[i]] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
  }
  const RunContext context = {.buffers = buffers_.data(),
                              .team = &team_,
                              .kernels = &BestKernels(),
                              .communicator = communicator,
                              .reductions = &reductions_};
  // After a failed run no reduction uses the executable's memory.
  const absl::Cleanup end = [&] { reductions_.End(communicator); };
  const ScopedTeam scoped_team(team_);
  if (profiling_) {
    TANDEM_RETURN_IF_ERROR(RunProfiled(context));
  } else {
    for (const Step& step : steps_) TANDEM_RETURN_IF_ERROR(step.run(context));
  }
  has_run_ = true;
  return absl::OkStatus();
}

absl::Status CpuExecutable::RunProfiled(const RunContext& context) {
  auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < steps_.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(steps_[i].run(context));
    const auto end = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(end - start).count();
    StepTime& time = profile_[i];
    time.best_seconds = time.runs == 0 ? seconds : std::min(time.best_seconds, seconds);
    time.total_seconds += seconds;
    ++time.runs;
    start = end;
  }
  return absl::OkStatus();
}

void CpuExecutable::StartProfile() {
  profiling_ = true;
  profile_.clear();
  for (const Step& step : steps_) profile_.push_back({.name = step.name});
}

absl::StatusOr<Tensor> CpuExecutable::Output(int i) const {
  if (!has_run_) return absl::FailedPreconditionError("the executable has not run yet");
  if (i < 0 || i >= static_cast<int>(outputs_.size())) {
    return absl::InvalidArgumentError(absl::StrCat("output ", i, " of ", outputs_.size()));
  }
  const cpu::Place& output = outputs_[i];
  return ToTensor(output.layout, buffers_[output.region.buffer] + output.region.offset);
}

}  // namespace tandem::cpu
